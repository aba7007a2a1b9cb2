# Attacks on the sandbox. Each block is one: a line
#     #: NAME | WALL | PROOF [| control] [| alone]
# and Python, which runs in the sandbox with the names of prelude.py. The proof says when it got through:
#     done     it ran to its end, where every refusal is an OSError
#     secret   what it printed holds the text that is in every secret file
#     harm     the host's files, sockets or processes are not as they were
#     limit    it ran to its end instead of being stopped for what it used
# An attack on what the whole machine shares changes nothing where it gets through.
# `control` runs it outside as well, where it has to get through: then it is an attack. `alone` gives it a
# sandbox of its own.

#: key_of_ssh | homes | secret | control
print(text_of(HOME + "/.ssh/id_ed25519"))
#: netrc | homes | secret | control
print(text_of(HOME + "/.netrc"))
#: credentials_of_aws | homes | secret | control
print(text_of(HOME + "/.aws/credentials"))
#: password_store | homes | secret | control
print(text_of(HOME + "/.password-store/bank.gpg"))
#: rclone | homes | secret | control
print(text_of(HOME + "/.config/rclone/rclone.conf"))
#: terraform | homes | secret | control
print(text_of(HOME + "/.terraform.d/credentials.tfrc.json"))
#: maven | homes | secret | control
print(text_of(HOME + "/.m2/settings.xml"))
#: pip_configuration | homes | secret | control
print(text_of(HOME + "/.config/pip/pip.conf"))
#: shell_history | homes | secret | control
print(text_of(HOME + "/.bash_history"))
#: keyrings_beside_kept_programs | homes | secret | control
print(text_of(HOME + "/.local/share/keyrings/login.keyring"))
#: credentials_of_cargo_beside_its_programs | homes | secret | control
print(text_of(HOME + "/.cargo/credentials.toml"))
#: keys_of_starling | homes | secret | control
print(text_of(HOME + "/.config/starling/config.toml"))
#: letters | homes | secret | control
print(text_of(HOME + "/documents/letter.txt"))
#: configuration_of_git | homes | secret | control
print(run("git", "config", "--file", HOME + "/.gitconfig", "--list"))
#: cache_of_starling | homes | secret | control
print(text_of(BED + "/cache/trajectories/run.jsonl"))
#: key_through_a_link_of_the_project | homes | secret | control
print(text_of(PROJECT + "/notes.txt"))
#: key_by_the_root_of_init | homes | secret
print(text_of("/proc/1/root" + HOME + "/.ssh/id_ed25519"))
#: key_by_own_root | homes | secret | control
print(text_of("/proc/self/root" + HOME + "/.ssh/id_ed25519"))
#: key_relative_to_the_project | homes | secret | control
os.chdir(PROJECT); print(text_of("../home/.ssh/id_ed25519"))
#: key_by_a_hard_link | homes | secret | control
import tempfile
with tempfile.TemporaryDirectory(dir=OUTSIDE if os.access(OUTSIDE, os.W_OK) else None) as there:
    os.link(HOME + "/.ssh/id_ed25519", there + "/key"); print(text_of(there + "/key"))
#: key_by_a_mapping | homes | secret | control
import mmap
with open(HOME + "/.ssh/id_ed25519", "rb") as file: print(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:])
#: key_by_its_handle | homes | secret
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)); mount = ctypes.c_int()
call("name_to_handle_at", -100, (HOME + "/.ssh/id_ed25519").encode(), handle, ctypes.byref(mount), 0)
print(os.read(call("open_by_handle_at", os.open("/", os.O_RDONLY), handle, os.O_RDONLY), 100))
#: any_handle | filter | done
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)); mount = ctypes.c_int()
call("name_to_handle_at", -100, b"/usr", handle, ctypes.byref(mount), 0)
call("open_by_handle_at", os.open("/", os.O_RDONLY), handle, os.O_RDONLY)
#: search_for_keys | homes | secret | control
for top in [BED]:
    for at, _, names in os.walk(top):
        for name in names:
            if name in ("id_ed25519", "credentials", "letter.txt"): print(text_of(at + "/" + name))
#: own_environment | environment | secret
print(dict(os.environ))
#: environment_of_init | environment | secret
print(text_of("/proc/1/environ"))
#: environments_of_all | environment | secret
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try: print(text_of("/proc/%s/%s" % (pid, name)))
        except OSError: pass
#: open_files | environment | secret
for number in range(3, 1024):
    try: os.lseek(number, 0, 0); print(os.read(number, 100000))
    except OSError: pass
#: open_directories | environment | done
for number in range(3, 1024):
    try: os.listdir(number); break
    except OSError: pass
else: refused("none is open")
#: shadow_passwords | root's files | done
if not text_of("/etc/shadow"): refused("nothing in it")
#: keys_of_the_host | root's files | done
names = [n for n in os.listdir("/etc/ssh") if n.startswith("ssh_host") and n.endswith("key")] if os.path.isdir("/etc/ssh") else []
if not any(text_of("/etc/ssh/" + name) for name in names): refused("none is seen")
#: home_of_root | homes | done
if not [n for n in os.listdir("/root") if n not in (".pyenv", ".cargo", ".rustup", ".local", "go")]: refused("nothing is seen")
#: homes_of_others | homes | done
if not os.listdir("/home"): refused("nothing is seen")
#: logs | root's files | done
if not [n for n in os.listdir("/var/log") if not os.stat("/var/log/" + n).st_mode & 4 and os.access("/var/log/" + n, os.R_OK)]: refused("nothing private is seen")
#: memory_of_the_kernel | devices | done
open("/proc/kcore", "rb").read(10)
#: memory_of_the_machine | devices | done
open("/dev/mem", "rb").read(10)
#: messages_of_the_kernel | devices | done
open("/dev/kmsg", "rb").read(10)
#: log_of_the_kernel | filter | done
call("syslog", 3, ctypes.create_string_buffer(100), 100)
#: debug_files_of_the_kernel | root's files | done
if not os.listdir("/sys/kernel/debug") + os.listdir("/sys/kernel/tracing"): refused("nothing is seen")

#: overwrite | read-only | harm
open(OUTSIDE + "/target.txt", "w").write("evil")
#: append | read-only | harm
open(OUTSIDE + "/target.txt", "a").write("evil")
#: truncate | read-only | harm
os.truncate(OUTSIDE + "/target.txt", 0)
#: create | read-only | harm
open(OUTSIDE + "/made-by-create", "x").write("evil")
#: delete | read-only | harm
os.unlink(OUTSIDE + "/target.txt")
#: rename | read-only | harm
os.rename(OUTSIDE + "/target.txt", OUTSIDE + "/made-by-rename")
#: change_mode | read-only | harm
os.chmod(OUTSIDE + "/target.txt", 0o777)
#: change_times | read-only | harm
os.utime(OUTSIDE + "/target.txt", (1, 1))
#: change_owner | read-only | harm
os.chown(OUTSIDE + "/target.txt", os.getuid(), os.getgid())
#: set_an_attribute | read-only | harm
os.setxattr(OUTSIDE + "/target.txt", "user.evil", b"1")
#: make_a_directory | read-only | harm
os.mkdir(OUTSIDE + "/made-by-mkdir")
#: make_a_link | read-only | harm
os.symlink("/etc/passwd", OUTSIDE + "/made-by-symlink")
#: write_by_own_root | read-only | harm
open("/proc/self/root" + OUTSIDE + "/target.txt", "w").write("evil")
#: write_by_the_root_of_init | read-only | harm
open("/proc/1/root" + OUTSIDE + "/target.txt", "w").write("evil")
#: write_relative_to_the_project | read-only | harm
os.chdir(PROJECT if os.path.isdir(PROJECT) else "."); open("../outside/target.txt", "w").write("evil")
#: write_through_a_link_of_the_project | read-only | harm
open("out/target.txt", "w").write("evil")
#: write_through_a_hard_link | read-only | harm
os.link(OUTSIDE + "/target.txt", "linked"); open("linked", "w").write("evil")
#: write_through_a_reopened_file | read-only | harm
fd = os.open(OUTSIDE + "/target.txt", os.O_RDONLY); open("/proc/self/fd/%d" % fd, "w").write("evil")
#: write_through_a_reopened_path | read-only | harm
fd = os.open(OUTSIDE + "/target.txt", os.O_PATH); open("/proc/self/fd/%d" % fd, "w").write("evil")
#: write_by_a_shared_mapping | read-only | harm
import mmap
fd = os.open(OUTSIDE + "/target.txt", os.O_RDONLY); mmap.mmap(fd, 4, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[0:4] = b"evil"
#: write_memory_of_a_read_only_mapping | read-only | harm
import mmap
fd = os.open(OUTSIDE + "/target.txt", os.O_RDONLY)
m = libc.mmap; m.restype = ctypes.c_void_p
at = m(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0))
mem = os.open("/proc/self/mem", os.O_RDWR); os.pwrite(mem, b"evil", at)
#: race_with_links | read-only | harm
import threading
stop = time.time() + 0.5
def swap():
    while time.time() < stop:
        try: os.symlink(OUTSIDE, "race"); os.unlink("race"); os.mkdir("race"); os.rmdir("race")
        except OSError: pass
thread = threading.Thread(target=swap); thread.start()
while time.time() < stop:
    try: open("race/target.txt", "w").write("evil")
    except OSError: pass
thread.join()
#: project_itself | shadow | harm
open(PROJECT + "/app.py", "w").write("evil")
#: hooks_of_git | shadow | harm
os.makedirs(PROJECT + "/.git/hooks", exist_ok=True); open(PROJECT + "/.git/hooks/post-commit", "w").write("evil")
#: configuration_of_the_repository | shadow | harm
open(PROJECT + "/.git/config", "w").write("[core]\nfsmonitor = evil\n")
#: path_file_in_the_environment | shadow | harm
open(PROJECT + "/.venv/lib/python3/site-packages/evil.pth", "w").write("import os")
#: interpreter_of_the_environment | shadow | harm
os.unlink(PROJECT + "/.venv/bin/tool"); open(PROJECT + "/.venv/bin/tool", "w").write("evil")
#: settings_of_the_environment | shadow | harm
open(PROJECT + "/.venv/pyvenv.cfg", "a").write("evil")
#: start_file_of_the_shell | homes | harm
open(HOME + "/.bashrc", "a").write("evil")
#: program_in_the_home | homes | harm
os.makedirs(HOME + "/.local/bin", exist_ok=True); open(HOME + "/.local/bin/ls", "w").write("evil")
#: module_of_the_user | homes | harm
os.makedirs(HOME + "/.local/lib/python3/site-packages", exist_ok=True); open(HOME + "/.local/lib/python3/site-packages/usercustomize.py", "w").write("evil")
#: cache_of_pip | homes | harm
os.makedirs(HOME + "/.cache/pip", exist_ok=True); open(HOME + "/.cache/pip/made", "w").write("evil")
#: scratch_directories | homes | harm
open(BED + "/cache/made", "w").write("evil")
#: programs_of_the_system | read-only | done
with open("/usr/local/bin/starling-attack", "w") as file: file.write("")
#: libraries_of_the_system | read-only | done
with open("/etc/ld.so.preload", "a") as file: file.write("")
#: jobs_of_the_system | read-only | done
with open("/etc/cron.d/starling-attack", "w") as file: file.write("")
#: libraries_of_python | read-only | done
with open(os.path.dirname(os.__file__) + "/starling_attack.py", "w") as file: file.write("")
#: temporary_files_of_others | own /tmp | harm
open("/tmp/starling-attack-%d" % os.getuid(), "w").write("evil"); open("/var/tmp/starling-attack-%d" % os.getuid(), "w").write("evil"); open("/dev/shm/starling-attack-%d" % os.getuid(), "w").write("evil")

#: core_pattern | kernel files | done
put_back("/proc/sys/kernel/core_pattern")
#: sysrq | kernel files | done
put("/proc/sysrq-trigger", "h")
#: binfmt_misc | kernel files | done
os.close(os.open("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY))
#: modprobe_path | kernel files | done
put_back("/proc/sys/kernel/modprobe")
#: uevent_helper | kernel files | done
put_back("/sys/kernel/uevent_helper")
#: release_agent | kernel files | done
import glob
agents = glob.glob("/sys/fs/cgroup/**/release_agent", recursive=True) or refused("none is seen")
put_back(agents[0])
#: own_cgroup | kernel files | done
import glob
found = glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True) or refused("none is seen")
put(found[0], str(os.getpid()))
#: power_state | kernel files | done
put("/sys/power/state", "")
#: frequency_of_a_processor | kernel files | done
put_back("/sys/devices/system/cpu/cpu1/online")
#: score_of_init | processes | done
put("/proc/1/oom_score_adj", "-1000")
#: priority_of_the_session_of_init | processes | done
put("/proc/1/autogroup", "19")
#: score_of_init_raised | processes | done
put("/proc/1/oom_score_adj", "1000")
#: dump_of_init | processes | done
put("/proc/1/coredump_filter", "0")
#: memory_of_init | processes | done
open("/proc/1/mem", "r+b", 0).read(1)
#: debug_messages | kernel files | done
put("/proc/dynamic_debug/control", "")
#: limits_of_processes | kernel files | done
put_back("/proc/sys/kernel/pid_max")

#: mount_memory | filter | done
call("mount", b"none", b"/mnt", b"tmpfs", 0, b"")
#: mount_a_bind | filter | done
call("mount", HOME.encode(), b"/mnt", b"none", 4096, b"")
#: remount_the_root | filter | done
call("mount", b"none", b"/", b"none", 32 | 4096, b"")
#: remount_by_the_program | filter | done
run("mount", "-o", "remount,rw", "/")
#: unmount_the_project | filter | done
call("umount2", os.getcwd().encode(), 2)
#: unmount_the_home | filter | done
call("umount2", b"/home", 2)
#: clone_a_mount | filter | done
call("open_tree", -100, b"/", 1)
#: move_a_mount | filter | done
call("move_mount", -100, b"/home", -100, b"/mnt", 0)
#: open_a_file_system | filter | done
call("fsopen", b"tmpfs", 0)
#: make_mounts_writable | filter | done
call("mount_setattr", -100, b"/", 0x8000, struct.pack("QQQQ", 0, 1, 0, 0), 32)
#: change_the_root | filter | done
call("pivot_root", b".", b".")
#: leave_by_chroot | filter | done
os.mkdir("jail"); os.chroot("jail")
#: mounts_of_init | filter | done
call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)
#: users_of_init | filter | done
call("setns", os.open("/proc/1/ns/user", os.O_RDONLY), 0)
#: network_of_init | filter | done
call("setns", os.open("/proc/1/ns/net", os.O_RDONLY), 0)
#: own_namespace | filter | done
call("setns", os.open("/proc/self/ns/user", os.O_RDONLY), 0)
#: new_users | filter | done | control
call("unshare", 0x10000000)
#: new_users_and_mounts | filter | done | control
call("unshare", 0x10020000)
#: new_network | filter | done
call("unshare", 0x40000000)
#: new_time | filter | done
call("unshare", 0x80)
#: new_users_by_clone | filter | done | control
if call("clone", 0x10000000 | 17, 0, 0, 0, 0) == 0: os._exit(0)
#: new_users_by_clone3 | filter | done | control
if call("clone3", struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88) == 0: os._exit(0)
#: mount_in_namespaces_by_the_program | filter | done
run("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt")
#: a_sandbox_inside | filter | done
run("bwrap", "--bind", "/", "/", "--tmpfs", "/mnt", "true")
#: chroot_in_namespaces | filter | done
run("unshare", "-Ur", "chroot", "/", "true")

#: trace_init | filter | done
call("ptrace", 16, 1, 0, 0)
#: trace_a_child | filter | done | control
pid = os.fork() or time.sleep(LONG) or os._exit(0)
try: call("ptrace", 0x4206, pid, 0, 0)
finally: os.kill(pid, signal.SIGKILL)
#: read_memory_of_init | filter | done
buffer = ctypes.create_string_buffer(8)
call("process_vm_readv", 1, struct.pack("QQ", ctypes.addressof(buffer), 8), 1, struct.pack("QQ", 0x400000, 8), 1, 0)
#: write_memory_of_init | filter | done
buffer = ctypes.create_string_buffer(8)
call("process_vm_writev", 1, struct.pack("QQ", ctypes.addressof(buffer), 8), 1, struct.pack("QQ", 0x400000, 8), 1, 0)
#: files_of_init | filter | done
call("pidfd_getfd", call("pidfd_open", 1, 0), 0, 0)
#: open_files_of_init | processes | done
for name in os.listdir("/proc/1/fd") or refused("none"): open("/proc/1/fd/" + name).read(1)
#: plan_of_init | processes | secret
for name in range(20):
    try: print(text_of("/proc/1/fd/%d" % name))
    except OSError: pass
#: listener_of_init | processes | done
import fcntl
for name in os.listdir("/proc/1/fd") or refused("none"): fcntl.ioctl(os.open("/proc/1/fd/" + name, os.O_RDWR), 0xc0502100, bytes(80))
#: kill_starling | processes | done
os.kill(STARLING, 0)
if "attacks" not in text_of("/proc/%d/cmdline" % STARLING): refused("another process")
#: kill_init | processes | harm
for number in (9, 15, 11, 11, 7, 7, 6, 19): os.kill(1, number)
time.sleep(0.1)
#: kill_all | processes | harm | alone
os.kill(-1, signal.SIGKILL)
#: limits_of_init | processes | done
import resource
resource.prlimit(1, resource.RLIMIT_NOFILE, (1, 1))
#: priority_of_all | capabilities | done
os.setpriority(os.PRIO_PROCESS, 0, -20)
#: schedule_first | capabilities | done
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
#: priority_of_init | filter | done
os.setpriority(os.PRIO_PROCESS, 1, 19)
#: priority_of_the_group_of_init | filter | done
os.setpriority(os.PRIO_PGRP, 0, 19)
#: priority_of_the_user | filter | done
os.setpriority(os.PRIO_USER, 0, 19)
#: idle_init | filter | done
os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))
#: processors_of_init | filter | done
os.sched_setaffinity(1, {0})
#: limits_of_a_thread_of_init | filter | done
import resource
for thread in range(2, 64):
    try: resource.prlimit(thread, resource.RLIMIT_NOFILE, (1, 1)); break
    except (OSError, ValueError): pass
else: refused("none")
#: compare_with_init | filter | done
call("kcmp", os.getpid(), 1, 2, 0, 0)

#: add_a_key | filter | done
call("add_key", b"user", b"starling-attack", b"x", 1, -2)
#: request_a_key | filter | done
call("request_key", b"user", b"starling-attack", None, -2)
#: keys_of_the_session | filter | done
call("keyctl", 0, -3, 1)
#: program_for_the_kernel | filter | done
call("bpf", 0, struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100), 120)
#: performance_events | filter | done
call("perf_event_open", struct.pack("IIQQQQQ", 1, 112, 0, 0, 0, 0, 1 | 1 << 5 | 1 << 6) + bytes(72), 0, -1, -1, 0)
#: rings | filter | done
call("io_uring_setup", 1, ctypes.create_string_buffer(120))
#: faults_in_user_space | filter | done
call("userfaultfd", 1)
#: kernel_module | filter | done
call("init_module", b"x", 1, b"")
#: another_kernel | filter | done
call("kexec_load", 0, 0, None, 0)
#: secret_memory | filter | done
call("memfd_secret", 0)
#: clock | filter | done
call("settimeofday", struct.pack("qq", int(time.time()), 0), None)
#: name_of_the_host | filter | done
call("sethostname", b"evil", 4)
#: restart | filter | done
call("reboot", 0xfee1dead, 672274793, 0, None)
#: accounting | filter | done
call("acct", b"/tmp/acct")
#: swapping | filter | done
call("swapon", b"/tmp/swap", 0)
#: quotas | filter | done
call("quotactl", 0x800001, b"/dev/vda", 0, None)
#: own_filter_with_a_listener | filter | done
instruction = struct.pack("HBBI", 6, 0, 0, 0x7fff0000); held = ctypes.create_string_buffer(instruction)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(held)))
call("seccomp", 1, 8, program)
#: own_filter_that_allows | filter | done
instruction = struct.pack("HBBI", 6, 0, 0, 0x7fff0000); held = ctypes.create_string_buffer(instruction)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(held)))
call("seccomp", 1, 0, program); call("mount", b"none", b"/mnt", b"tmpfs", 0, b"")
#: calls_of_x32 | filter | done
if MACHINE != "x86_64": refused("another machine")
raw(0x40000000 | 165, b"none", b"/mnt", b"tmpfs", 0, b"")
#: calls_of_32_bit_programs | filter | done
if MACHINE != "x86_64": refused("another machine")
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()

#: capabilities | capabilities | done
line = [l for l in text_of("/proc/self/status").splitlines() if l.startswith(("CapEff", "CapPrm", "CapAmb", "CapInh"))]
if not any(int(l.split()[1], 16) for l in line): refused("none")
#: take_capabilities | capabilities | done
call("capset", struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 1 << 21, 1 << 21, 0, 0, 0, 0))
#: become_root | capabilities | done
if os.getuid() == 0: os.setuid(12345)
else: os.setuid(0)
#: groups | capabilities | done
os.setgroups([0])
#: programs_with_rights | capabilities | done
for name in ("/usr/bin/su", "/bin/su", "/usr/bin/sudo", "/usr/bin/passwd"):
    if os.path.exists(name):
        if "Uid:\t%d\t0" % os.getuid() in run(name, "--help") or os.getuid() == 0: refused("no other user")
refused("none gave any")
#: own_program_with_rights | capabilities | done
import shutil
shutil.copy("/bin/cat", "cat"); os.chmod("cat", 0o4755)
status = run("./cat", "/proc/self/status")
if "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status: refused("no rights gained")
#: disk_by_a_node | capabilities | done
import stat
os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)); open("disk", "rb").read(1)
#: memory_by_a_node | capabilities | done
import stat
os.mknod("mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1)); open("mem", "rb").read(1)
#: disks | devices | done
import glob
names = glob.glob("/dev/[svn][dv]*") + glob.glob("/dev/loop*") + glob.glob("/dev/dm-*") or refused("none is seen")
open(names[0], "rb").read(1)
#: device_of_virtual_machines | devices | done
open("/dev/kvm", "r+b")
#: file_systems_in_user_space | devices | done
open("/dev/fuse", "r+b")
#: raw_packets | sockets | done
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
#: names_in_devices | devices | done
makers = [os.mkdir, os.mkfifo, lambda at: open(at, "w").close(), lambda at: os.symlink("null", at), lambda at: os.link("/dev/zero", at), lambda at: os.rename("/dev/fd", at), lambda at: socket.socket(socket.AF_UNIX).bind(at)]
def makes(number):
    try: makers[number]("/dev/starling-attack-%d" % number); return True
    except OSError: return False
if not any([makes(number) for number in range(len(makers))]): refused("no name can be made")
#: device_of_the_network | capabilities | done
import fcntl
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"lo", 0))

#: type_into_a_terminal | filter | done
import fcntl, pty
_, terminal = pty.openpty(); fcntl.ioctl(terminal, 0x5412, b"x")
#: type_into_standard_input | filter | done
import fcntl
fcntl.ioctl(0, 0x5412, b"x")
#: console | filter | done
import fcntl
fcntl.ioctl(0, 0x541c, b"\x02")
#: terminal_with_a_high_half | filter | done
_, terminal = __import__("pty").openpty()
if libc.syscall(ctypes.c_long(16 if MACHINE == "x86_64" else 29), ctypes.c_long(terminal), ctypes.c_long(0x100005412), b"x") < 0: refused("refused")

#: packets | sockets | done
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
#: virtual_machine_sockets | sockets | done
socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
#: cryptography_of_the_kernel | sockets | done
socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
#: bluetooth | sockets | done
socket.socket(31, socket.SOCK_RAW, 1)
#: port_of_the_host | sockets | done | control
socket.create_connection(("127.0.0.1", PORT), 5)
#: port_of_the_host_by_ipv6 | sockets | done
socket.create_connection(("::1", PORT), 5)
#: address_outside | sockets | done
socket.create_connection(("192.0.2.1", 80), 5)
#: datagram_to_the_host | sockets | harm
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"evil", ("127.0.0.1", PORT))
#: name_outside | sockets | done
socket.getaddrinfo("example.com", 80)
#: abstract_socket | sockets | done | control
unix("\0" + ABSTRACT)
#: socket_in_the_home | sockets | done | control
unix(HOME + "/.docker/run/docker.sock")
#: socket_outside | sockets | done | control
unix(OUTSIDE + "/unix.socket")
#: socket_of_the_project | sockets | done | control
unix(PROJECT + "/.git/fsmonitor--daemon.ipc")
#: socket_by_a_relative_path | sockets | done | control
os.chdir(OUTSIDE); unix("unix.socket")
#: socket_by_own_root | sockets | done | control
unix("/proc/self/root" + OUTSIDE + "/unix.socket")
#: socket_by_a_directory | sockets | done | control
fd = os.open(OUTSIDE, os.O_PATH); unix("/proc/self/fd/%d/unix.socket" % fd)
#: socket_by_a_link | sockets | done
os.symlink(OUTSIDE + "/unix.socket", "link.socket"); unix("link.socket")
#: socket_by_a_hard_link | sockets | done
os.link(OUTSIDE + "/unix.socket", "hard.socket"); unix("hard.socket")
#: socket_by_a_short_address | sockets | done | control
os.chdir(OUTSIDE); s = socket.socket(socket.AF_UNIX); address = struct.pack("H14s", 1, b"unix.socket")
if libc.connect(s.fileno(), address, 16) < 0: raise OSError(ctypes.get_errno(), "connect")
#: socket_by_a_swapped_number | sockets | done
import threading
decoys = [socket.socket(), socket.socket(socket.AF_UNIX)]; fd = os.dup(decoys[0].fileno()); stop = time.time() + 0.7; os.chdir(OUTSIDE)
def swap():
    while time.time() < stop:
        for decoy in decoys: os.dup2(decoy.fileno(), fd)
thread = threading.Thread(target=swap); thread.start(); address = ctypes.create_string_buffer(struct.pack("H14s", 1, b"unix.socket"))
try:
    while time.time() < stop:
        if libc.connect(fd, address, 16) == 0: break
    else: refused("never")
finally: thread.join()
#: socket_by_a_swapped_address | sockets | done
import threading
own = socket.socket(socket.AF_UNIX); own.bind("/tmp/swapped-own"); own.listen(128); own.setblocking(False)
paths = [b"/tmp/swapped-own", (OUTSIDE + "/unix.socket").encode()]; stop = time.time() + 0.7
address = ctypes.create_string_buffer(struct.pack("H108s", 1, paths[0])); base = ctypes.addressof(address) + 2
def swap():
    while time.time() < stop:
        for path in paths: ctypes.memmove(base, path + b"\0", len(path) + 1)
thread = threading.Thread(target=swap); thread.start()
try:
    while time.time() < stop:
        s = socket.socket(socket.AF_UNIX); s.setblocking(False); libc.connect(s.fileno(), address, 110)
        try:
            if s.getpeername() == paths[1].decode(): break
        except OSError: pass
        s.close()
        try: own.accept()[0].close()
        except OSError: pass
    else: refused("never")
finally: thread.join()
#: socket_by_a_swapped_link | sockets | done
import threading
os.chdir("/tmp"); own = socket.socket(socket.AF_UNIX); own.bind("swapped-link-own"); own.listen(128); own.setblocking(False); stop = time.time() + 0.7
def swap():
    while time.time() < stop:
        for target in ("swapped-link-own", OUTSIDE + "/unix.socket"): os.symlink(target, "swap.new"); os.rename("swap.new", "swap.link")
thread = threading.Thread(target=swap); thread.start()
try:
    while time.time() < stop:
        s = socket.socket(socket.AF_UNIX); s.setblocking(False)
        try:
            s.connect("swap.link")
            if "unix.socket" in s.getpeername(): break
        except OSError: pass
        s.close()
        try: own.accept()[0].close()
        except OSError: pass
    else: refused("never")
finally: thread.join()
#: sequenced_packets | sockets | done
unix(OUTSIDE + "/unix.socket", socket.SOCK_SEQPACKET)
#: datagram_to_a_socket | sockets | harm | control
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"evil", OUTSIDE + "/datagram.socket")
#: datagram_from_a_pair | sockets | harm
socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"evil", OUTSIDE + "/datagram.socket")
#: datagram_from_a_raw_socket | sockets | harm
socket.socket(socket.AF_UNIX, socket.SOCK_RAW).sendto(b"evil", OUTSIDE + "/datagram.socket")
#: sockets_of_the_system | sockets | done
import glob
for path in glob.glob("/run/**/*.sock*", recursive=True) + glob.glob("/var/run/**/*.sock*", recursive=True) + ["/run/dbus/system_bus_socket", "/run/docker.sock", "/var/snap/lxd/common/lxd/unix.socket", "/dev/log"]:
    try: unix(path); break
    except OSError: pass
else: refused("none")

#: fork_bomb | limits | limit | alone
while True:
    try: os.fork()
    except OSError: pass
#: bomb_of_threads | limits | limit | alone
import threading
threading.stack_size(65536)
try:
    for _ in range(3000): threading.Thread(target=time.sleep, args=(20,)).start()
except RuntimeError as error: refused(str(error))
#: memory | limits | limit | alone
held = [bytearray(os.urandom(1)) * (10 << 20) for _ in range(60)]; time.sleep(LONG)
#: memory_of_many | limits | limit | alone
for _ in range(12):
    if os.fork() == 0: held = b"x" * (50 << 20); time.sleep(LONG); os._exit(0)
time.sleep(LONG)
#: memory_behind_files | limits | limit | alone
held = []
for _ in range(60):
    fd = os.memfd_create("x"); held.append(fd)
    for _ in range(10): os.write(fd, b"x" * (1 << 20))
time.sleep(LONG)
#: memory_shared_with_the_dead | limits | limit | alone
import mmap
held = [mmap.mmap(-1, 600 << 20)]
if os.fork() == 0:
    for at in range(0, 600 << 20, 4096): held[0][at] = 1
    os._exit(0)
os.wait(); time.sleep(LONG)
#: memory_in_segments | limits | limit | alone
shmget, shmat = libc.shmget, libc.shmat; shmat.restype = ctypes.c_void_p
for _ in range(12):
    number = shmget(0, ctypes.c_size_t(50 << 20), 0o1600)
    if number < 0: refused("shmget")
    at = shmat(number, None, 0); ctypes.memset(at, 1, 50 << 20); libc.shmdt(ctypes.c_void_p(at))
time.sleep(LONG)
#: memory_in_page_tables | limits | limit | alone
libc.mmap.restype = ctypes.c_void_p
for _ in range(4):
    at = libc.mmap(None, ctypes.c_size_t(1 << 37), 1, 0x4022, -1, ctypes.c_long(0))
    if at in (None, ctypes.c_void_p(-1).value): refused("mmap")
    libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(1 << 37), 15)
    for page in range(at, at + (1 << 37), 2 << 20): ctypes.c_char.from_address(page).value
time.sleep(LONG)
#: memory_in_message_queues | limits | limit | alone
text = ctypes.create_string_buffer(struct.pack("l", 1) + bytes(8000)); sent = 0
while sent < 600 << 20:
    number = libc.msgget(0, 0o1600)
    if number < 0: refused("msgget")
    while libc.msgsnd(number, text, ctypes.c_size_t(8000), 0o4000) == 0: sent += 8000
time.sleep(LONG)
#: memory_in_semaphores | limits | limit | alone
for _ in range(400):
    if libc.semget(0, 32000, 0o1600) < 0: refused("semget")
time.sleep(LONG)
#: memory_of_empty_files | limits | limit | alone
for n in range(600000): os.close(os.open("/tmp/%06d" % n, os.O_CREAT | os.O_WRONLY))
time.sleep(LONG)
#: files_in_tmp | limits | limit | alone
for n in range(12): open("/tmp/%d" % n, "wb").write(b"x" * (50 << 20))
time.sleep(LONG)
#: files_in_var_tmp | limits | limit | alone
for n in range(12): open("/var/tmp/%d" % n, "wb").write(b"x" * (50 << 20))
time.sleep(LONG)
#: files_in_run | limits | limit | alone
for n in range(12): open("/run/%d" % n, "wb").write(b"x" * (50 << 20))
time.sleep(LONG)
#: files_in_shared_memory | limits | limit | alone
for n in range(12): open("/dev/shm/%d" % n, "wb").write(b"x" * (50 << 20))
time.sleep(LONG)
#: files_here_and_there | limits | limit | alone
for n in range(4):
    for place in ("/tmp", "/var/tmp", "/run", "/dev/shm"): open("%s/%d" % (place, n), "wb").write(b"x" * (40 << 20))
time.sleep(LONG)
#: files_in_devices | limits | limit | alone
for n in range(12): open("/dev/%d" % n, "wb").write(b"x" * (50 << 20))
time.sleep(LONG)
#: disk | limits | limit | alone
for n in range(12): open("fill-%d" % n, "wb").write(b"x" * (50 << 20))
time.sleep(LONG)
#: disk_without_a_name | limits | limit | alone
held = []
for n in range(12):
    file = open("gone-%d" % n, "wb"); os.unlink(file.name); file.write(b"x" * (50 << 20)); file.flush(); held.append(file)
time.sleep(LONG)
#: huge_file | limits | limit | alone
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("huge", "wb") as file: file.truncate(1 << 40)
#: output | limits | limit | alone
while True: os.write(1, b"x" * 65536)
#: daemon | processes | harm | alone
if os.fork() == 0:
    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2); os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", MARK])
    os._exit(0)
time.sleep(0.5)
