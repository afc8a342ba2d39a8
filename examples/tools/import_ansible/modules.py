"""The table of modules: the function that maps each module of Ansible to a kind of steadfast.

A function takes the parameters of a task, uses every one of them, and returns kind, name and fields. It raises
`NeedsExec` if only a command can do the work.
"""

import edits
import files
import sources
import system

CONTROL = set(
    "include_tasks import_tasks import_role include_role include include_vars set_fact meta debug assert fail "
    "setup stat package_facts service_facts getent find slurp wait_for wait_for_connection pause add_host "
    "group_by mysql_info validate_argument_spec import_playbook gather_facts set_stats".split()
)
OTHER_SYSTEMS = set(
    "yum dnf yum_repository rpm_key pacman openbsd_pkg pkgng zypper zypper_repository apk homebrew portage "
    "selinux seboolean seport sefcontext firewalld win_shell win_command redhat_subscription rhsm_repository "
    "dnf5 sysrc".split()
)

MODULES = {
    "file": files.file,
    "copy": files.copy,
    "template": files.template,
    "assemble": files.assemble,
    "lineinfile": edits.line,
    "blockinfile": edits.block,
    "replace": edits.replace,
    "dpkg_divert": sources.divert,
    "ini_file": edits.ini,
    "package": sources.package,
    "apt": sources.package,
    "service": system.service,
    "systemd": system.service,
    "systemd_service": system.service,
    "user": system.user,
    "group": system.group,
    "authorized_key": system.authorized_key,
    "cron": system.cron,
    "mount": system.mount,
    "sysctl": system.sysctl,
    "modprobe": system.modprobe,
    "timezone": system.timezone,
    "hostname": system.hostname,
    "locale_gen": system.locale,
    "git": sources.git,
    "get_url": sources.get_url,
    "unarchive": sources.unarchive,
    "deb822_repository": sources.deb822,
    "apt_repository": sources.apt_repository,
    "debconf": sources.debconf,
    "pam_limits": edits.pam_limits,
    "known_hosts": edits.known_hosts,
    "acl": files.acl,
    "crypttab": edits.crypttab,
    "capabilities": files.capabilities,
}
