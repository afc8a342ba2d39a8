//! Stand-ins of the account tools and of the programs for names and locales on a simulated host.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;
use steadfast_resources::Secret;
use steadfast_resources::host::simulated::{Machine, here};
use steadfast_resources::host::{Captured, Command, End, Finished};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
const SHADOW: &str = "/etc/shadow";

/// The locales of the host, one a line.
const MADE: &str = "/usr/lib/locale/made";

/// The calls of tools so far, with their input.
pub(crate) type Calls = Rc<RefCell<Vec<(Vec<String>, Option<String>)>>>;

/// Makes a host with usual tables and the tools.
pub(crate) fn machine() -> (Machine, Calls) {
    let machine = Machine::default();
    let calls = prepare(&machine);
    (machine, calls)
}

/// Gives a host usual tables and the tools.
pub(crate) fn prepare(machine: &Machine) -> Calls {
    machine.make_directories("/etc").expect("made");
    machine.make_directories("/home/eve").expect("made");
    let passwd = "root:x:0:0:root:/root:/bin/bash\neve:x:1000:1000:Eve,,,:/home/eve:/bin/sh\n";
    machine.write(PASSWD, passwd).expect("written");
    let group = "root:x:0:\nadm:x:4:eve\nsudo:x:27:\neve:x:1000:\n";
    machine.write(GROUP, group).expect("written");
    let shadow = "root:*:19000:0:99999:7:::\neve:$6$old$hash:19000:0:99999:7:::\n";
    machine.write(SHADOW, shadow).expect("written");
    machine.chmod(SHADOW, 0o640).expect("changed");
    let calls = Calls::default();
    let record = Rc::clone(&calls);
    machine.set_runner(move |command, _cancel| {
        let input = command.stdin.as_ref().map(|input| Secret::reveal(input).to_owned());
        record.borrow_mut().push((command.argv.clone(), input));
        let machine = here().expect("a simulated host");
        let (code, message) = machine.foreign(|machine| run(machine, command));
        let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
        if code == 0 { &mut stdout } else { &mut stderr }.push(message.as_bytes());
        let end = End::Exited(code);
        Box::pin(ready(Ok(Finished { end, stdout, stderr, held: false })))
    });
    calls
}

/// Returns a table as text.
pub(crate) fn text(machine: &Machine, path: &str) -> String {
    String::from_utf8(machine.content(path).expect("a file")).expect("text")
}

/// Returns the row of a name in a table.
pub(crate) fn row(machine: &Machine, path: &str, name: &str) -> Option<Vec<String>> {
    let row =
        text(machine, path).lines().find(|line| line.starts_with(&format!("{name}:")))?.to_owned();
    Some(row.split(':').map(str::to_owned).collect())
}

fn put(machine: &Machine, path: &str, name: &str, row: Option<&[String]>) {
    let old = text(machine, path);
    let is_own = |line: &&str| line.starts_with(&format!("{name}:"));
    let mut new: String =
        old.lines().filter(|line| !is_own(line)).flat_map(|line| [line, "\n"]).collect();
    if let Some(row) = row {
        new += &format!("{}\n", row.join(":"));
    }
    machine.replace(path, new).expect("written");
    if path == SHADOW {
        machine.chmod(path, 0o640).expect("changed");
    }
}

/// Takes a user out of all groups.
fn leave_groups(machine: &Machine, user: &str) {
    let mut new = String::new();
    for line in text(machine, GROUP).lines() {
        let (start, all) = line.rsplit_once(':').expect("a row");
        let rest: Vec<&str> = all.split(',').filter(|it| *it != user).collect();
        new += &format!("{start}:{}\n", rest.join(","));
    }
    machine.replace(GROUP, new).expect("written");
}

fn number(machine: &Machine, group: &str) -> String {
    row(machine, GROUP, group).map_or_else(|| group.to_owned(), |row| row[2].clone())
}

/// Changes the members of a group by a function on their list.
fn members(machine: &Machine, group: &str, change: impl FnOnce(&mut Vec<String>)) {
    let mut row = row(machine, GROUP, group).expect("a group");
    let mut list: Vec<String> =
        row[3].split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
    change(&mut list);
    row[3] = list.join(",");
    put(machine, GROUP, group, Some(&row));
}

/// Takes a program away from the host.
pub(crate) fn lacks(machine: &Machine, program: &str) {
    machine.write("/etc/.lacks", program).expect("written");
}

fn run(machine: &Machine, command: &Command) -> (i32, String) {
    if machine.content("/etc/.locked").is_some() {
        return (1, format!("{}: cannot lock /etc/passwd; try again later.\n", command.argv[0]));
    }
    let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let option = |name: &str| {
        let at = argv.iter().position(|word| *word == name)?;
        argv.get(at + 1).copied()
    };
    let name = *argv.last().expect("a name");
    // `sh -c 'command -v "$1"' sh PROGRAM` finds a program.
    let program = if argv[0] == "sh" { name } else { argv[0] };
    if machine.content("/etc/.lacks").is_some_and(|lacked| lacked == program.as_bytes()) {
        return (127, format!("{program}: not found\n"));
    }
    match argv[0] {
        "sh" => {}
        "useradd" => useradd(machine, name, &argv, &option),
        "usermod" => usermod(machine, name, &argv, &option),
        "userdel" => {
            put(machine, PASSWD, name, None);
            put(machine, SHADOW, name, None);
            leave_groups(machine, name);
        }
        "chpasswd" => {
            let line = command.stdin.as_ref().expect("a line").reveal().trim_end().to_owned();
            let (name, hash) = line.split_once(':').expect("two fields");
            shadow(machine, name, |row| hash.clone_into(&mut row[1]));
        }
        "groupadd" => {
            let gid = option("--gid").unwrap_or("1500").to_owned();
            put(machine, GROUP, name, Some(&[name.into(), "x".into(), gid, String::new()]));
        }
        "groupmod" => {
            let mut row = row(machine, GROUP, name).expect("a group");
            option("--gid").expect("a gid").clone_into(&mut row[2]);
            put(machine, GROUP, name, Some(&row));
        }
        "groupdel" => put(machine, GROUP, name, None),
        "gpasswd" => match (option("--members"), option("--delete")) {
            (Some(list), _) => members(machine, name, |all| {
                *all = list.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
            }),
            (_, Some(user)) => members(machine, name, |all| all.retain(|it| it != user)),
            _ => return (2, "gpasswd: usage\n".to_owned()),
        },
        "mkhomedir_helper" => {
            let home = row(machine, PASSWD, argv[1]).expect("a user")[5].clone();
            machine.make_directories(home).expect("made");
        }
        "hostname" => {
            machine.replace("/proc/sys/kernel/hostname", format!("{name}\n")).expect("written");
        }
        "locale" => return (0, locales(machine)),
        "locale-gen" => {
            let list = text(machine, "/etc/locale.gen").replace("UTF-8", "utf8");
            let names = list.lines().filter(|line| !line.starts_with('#'));
            let names =
                names.filter_map(|line| line.split(' ').next()).map(|name| format!("{name}\n"));
            machine.replace(MADE, format!("C\n{}", names.collect::<String>())).expect("written");
        }
        "localedef" => {
            let kept = locales(machine).replace(&format!("{name}\n"), "");
            machine.replace(MADE, kept).expect("written");
        }
        other => return (127, format!("{other}: not found\n")),
    }
    (0, String::new())
}

fn locales(machine: &Machine) -> String {
    machine
        .content(MADE)
        .map_or_else(|| "C\n".to_owned(), |made| String::from_utf8(made).expect("text"))
}

type Options<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

fn useradd(machine: &Machine, name: &str, argv: &[&str], option: &Options<'_>) {
    let uid = option("--uid").unwrap_or("1600").to_owned();
    let gid = option("--gid").map_or_else(|| "1600".to_owned(), |group| number(machine, group));
    if option("--gid").is_none() {
        put(machine, GROUP, name, Some(&[name.into(), "x".into(), gid.clone(), String::new()]));
    }
    let home = option("--home-dir").map_or_else(|| format!("/home/{name}"), str::to_owned);
    if argv.contains(&"--create-home") {
        machine.make_directories(&home).expect("made");
    }
    let comment = option("--comment").unwrap_or_default().to_owned();
    let shell = option("--shell").unwrap_or("/bin/sh").to_owned();
    put(machine, PASSWD, name, Some(&[name.into(), "x".into(), uid, gid, comment, home, shell]));
    let row = format!("{name}:!:19000:0:99999:7:::");
    let row: Vec<String> = row.split(':').map(str::to_owned).collect();
    put(machine, SHADOW, name, Some(&row));
    usermod(machine, name, &[], &|key| (key == "--groups").then(|| option("--groups")).flatten());
    expire(machine, name, option("--expiredate"));
}

fn usermod(machine: &Machine, name: &str, argv: &[&str], option: &Options<'_>) {
    let mut user = row(machine, PASSWD, name).expect("a user");
    for (key, column) in [("--uid", 2), ("--comment", 4), ("--home", 5), ("--shell", 6)] {
        if let Some(value) = option(key) {
            value.clone_into(&mut user[column]);
        }
    }
    if let Some(group) = option("--gid") {
        user[3] = number(machine, group);
    }
    put(machine, PASSWD, name, Some(&user));
    if let Some(list) = option("--groups") {
        let wanted: Vec<&str> = list.split(',').filter(|it| !it.is_empty()).collect();
        let all: Vec<String> = text(machine, GROUP)
            .lines()
            .map(|line| line.split(':').next().unwrap().to_owned())
            .collect();
        for group in all {
            members(machine, &group, |list| {
                let is_in = list.iter().any(|it| it == name);
                if wanted.contains(&group.as_str()) && !is_in {
                    list.push(name.to_owned());
                } else if !wanted.contains(&group.as_str()) && !argv.contains(&"--append") {
                    list.retain(|it| it != name);
                }
            });
        }
    }
    if argv.contains(&"--lock") {
        shadow(machine, name, |row| row[1] = format!("!{}", row[1]));
    }
    if argv.contains(&"--unlock") {
        shadow(machine, name, |row| row[1] = row[1].trim_start_matches('!').to_owned());
    }
    expire(machine, name, option("--expiredate"));
    if let Some(home) = option("--home").filter(|_| argv.contains(&"--move-home")) {
        machine.make_directories(home).expect("made");
    }
}

fn shadow(machine: &Machine, name: &str, change: impl FnOnce(&mut Vec<String>)) {
    let mut row = row(machine, SHADOW, name).expect("a user");
    change(&mut row);
    put(machine, SHADOW, name, Some(&row));
}

/// Sets an expiry date; the tests use only the first of January 2030 and none.
fn expire(machine: &Machine, name: &str, date: Option<&str>) {
    let day = match date {
        None => return,
        Some("") => "",
        Some("2030-01-01") => "21915",
        Some(other) => panic!("unexpected date {other}"),
    };
    shadow(machine, name, |row| day.clone_into(&mut row[7]));
}
