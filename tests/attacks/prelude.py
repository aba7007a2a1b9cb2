# Runs attacks one after another, each in a process of its own, and prints what came of each:
#     @ NAME secret|done|refused|broken TEXT
# An attack that printed the secret got it, one that runs to its end is done, one that ends with an OSError
# or by a signal of the kernel's filter is refused, and any other error means that the attack itself is
# broken. The secret is known here by its hash alone.
import ctypes, hashlib, json, os, platform, re, signal, socket, struct, subprocess, sys, time, traceback

with open(sys.argv[1]) as plan:
    PLAN = json.load(plan)
BED, PORT, ABSTRACT = PLAN["bed"], PLAN["port"], PLAN["abstract"]
STARLING, MARK = PLAN["starling"], PLAN["mark"]
HOME = BED + "/home"
OUTSIDE = BED + "/outside"
PROJECT = BED + "/project"
MACHINE = platform.machine()
# How long an attack holds on to what it took: a busy machine may need seconds to see it. One that is
# seen ends at once.
LONG = 30
# How long a program may take; no answer is no refusal.
PATIENCE = 60
libc = ctypes.CDLL(None, use_errno=True)

NUMBERS = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "setns": (308, 268),
    "unshare": (272, 97), "ptrace": (101, 117), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "mount_setattr": (442, 442),
    "clone3": (435, 435), "clone": (56, 220), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "init_module": (175, 105),
    "kexec_load": (246, 104), "memfd_secret": (447, 447), "chroot": (161, 51),
    "sethostname": (170, 161), "settimeofday": (164, 170), "reboot": (169, 142),
    "syslog": (103, 116), "acct": (163, 89), "swapon": (167, 224), "quotactl": (179, 60),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "seccomp": (317, 277),
    "capset": (126, 91), "kcmp": (312, 272),
}


def call(name, *arguments):
    number = NUMBERS[name][0 if MACHINE == "x86_64" else 1]
    return raw(number, *arguments)


def raw(number, *arguments):
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def refused(why):
    raise OSError(why)


def run(*words, **options):
    """A program that has to end well; one that is not installed refuses nothing."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **options)
    except FileNotFoundError:
        raise OSError(words[0] + " is not here")
    if done.returncode != 0:
        raise OSError(done.stderr.strip()[-200:] or "status %d" % done.returncode)
    return done.stdout


def text_of(path):
    with open(path) as file:
        return file.read()


def put(path, text):
    """Writes at once, so that a refusal is seen."""
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode())


def put_back(path):
    """Writes what is there: where that works, anything could have been written."""
    put(path, text_of(path))


def unix(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(LONG)
    s.connect(path)
    return s


class Said:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def attempt(name, code):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        said = Said()
        signal.alarm(2 * PATIENCE)
        try:
            scope = dict(globals(), print=lambda *a: said.write(" ".join(map(str, a)) + "\n"))
            exec(compile(code, name, "exec"), scope)
            verdict = "done"
        except subprocess.TimeoutExpired as error:
            verdict = "broken"
            said.write(str(error))
        except (OSError, MemoryError, subprocess.SubprocessError) as error:
            verdict = "refused"
            said.write("%s: %s" % (type(error).__name__, error))
        except BaseException:
            verdict = "broken"
            said.write(traceback.format_exc())
        found = re.findall("canary-[0-9a-f]{16}", said.text)
        if any(hashlib.sha256(word.encode()).hexdigest() == PLAN["hash"] for word in found):
            verdict = "secret"
        answer = json.dumps([verdict, said.text[-60:] if verdict == "refused" else said.text[-600:] if verdict == "broken" else ""]).encode()
        while answer:
            answer = answer[os.write(write, answer):]
        os._exit(0)
    os.close(write)
    answer = b""
    while chunk := os.read(read, 65536):
        answer += chunk
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if answer:
        return json.loads(answer)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
        return ["refused", "ended by the filter"]
    return ["broken", "ended with %d" % status]


def main():
    for name, code in PLAN["attacks"]:
        verdict, said = attempt(name, code)
        print("@", name, verdict, " ".join(said.split()), flush=True)


main()
