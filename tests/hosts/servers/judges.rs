//! The judges of a server: pytest-testinfra (with `puppet resource`) and Ansible in check mode, on the host itself.

use crate::host::{Answer, Host};

/// The packages of Debian that the judges need.
pub(crate) const PACKAGES: &[&str] = &[
    "curl",
    "iproute2",
    "puppet-agent",
    "puppet-module-puppetlabs-cron-core",
    "puppet-module-puppetlabs-host-core",
    "puppet-module-puppetlabs-mount-core",
    "python3",
    "python3-apt",
    "python3-psycopg2",
];

impl Host {
    /// Lets pytest-testinfra and Ansible judge the host by `tests/servers/test_NAME.py` and `ansible/NAME.yaml`. The
    /// judges come after the apply: the host was fresh for it.
    pub(crate) fn judge(&self, name: &str) {
        self.judge_but_for(name, 0);
    }

    /// Judges as [`Self::judge`]; Ansible would change this number of tasks.
    pub(crate) fn judge_but_for(&self, name: &str, disagreements: usize) {
        self.install_judges();
        let tests = format!("python3 -m pytest -q -p no:cacheprovider /opt/servers/test_{name}.py");
        let answer = self.judging(&tests);
        assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
        assert!(answer.stdout.contains(" passed"), "{}", answer.stdout);
        let play = format!(
            "python3 /opt/judges/bin/ansible-playbook --check --diff -i localhost, -c local \
               -e ansible_python_interpreter=/usr/bin/python3 /opt/servers/ansible/{name}.yaml"
        );
        let answer = self.judging(&play);
        let recap = answer.stdout.lines().find(|line| line.contains("unreachable="));
        let recap = recap.unwrap_or_default().to_owned();
        let changed = format!("changed={disagreements} ");
        let agrees = [changed.as_str(), "unreachable=0 ", "failed=0 "]
            .into_iter()
            .all(|it| recap.contains(it));
        assert!(agrees && !recap.contains("ok=0 "), "{}{}", answer.stdout, answer.stderr);
    }

    /// Installs the packages that the judges need.
    pub(crate) fn install_judges(&self) {
        let all = PACKAGES.join(" ");
        self.shell(&format!(
            "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends {all} >/dev/null"
        ));
    }

    /// Runs a shell script in the environment of the judges.
    pub(crate) fn judging(&self, command: &str) -> Answer {
        let script = format!(
            "cd /tmp
             export PYTHONPATH=/opt/judges PYTHONDONTWRITEBYTECODE=1 ANSIBLE_HOME=/tmp/ansible \
               ANSIBLE_PIPELINING=1 ANSIBLE_LOCALHOST_WARNING=0 HOME=/root
             {command}"
        );
        self.run(&["sh", "-euc", &script])
    }
}
