//! The attacks, read from `attacks.py`, and ordinary programs that must keep working.

pub const PRELUDE: &str = include_str!("prelude.py");
const ATTACKS: &str = include_str!("attacks.py");

/// The evidence that an attack succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackProof {
    /// The script ran to its end. Every refusal would have been an error.
    Done,
    /// The output contains the canary value, which is in every secret file.
    Secret,
    /// The host's files, sockets or processes have changed.
    Harm,
    /// The script ran to its end and was not stopped at a resource limit.
    Limit,
}

/// An attack script, and how its success is detected.
#[derive(Debug, Clone)]
pub struct Attack {
    pub name: String,
    pub proof: AttackProof,
    /// Whether the attack must succeed without a sandbox, as a control.
    pub control: bool,
    /// Whether the attack needs its own sandbox.
    pub alone: bool,
    pub code: String,
}

pub fn read() -> Vec<Attack> {
    let mut attacks: Vec<Attack> = Vec::new();
    for block in ATTACKS.split("\n#: ").skip(1) {
        let (head, code) = block.split_once('\n').unwrap();
        let words: Vec<&str> = head.split('|').map(str::trim).collect();
        let proof = match words[2] {
            "done" => AttackProof::Done,
            "secret" => AttackProof::Secret,
            "harm" => AttackProof::Harm,
            "limit" => AttackProof::Limit,
            other => panic!("{}: {other} is no proof", words[0]),
        };
        assert!(!attacks.iter().any(|attack| attack.name == words[0]));
        attacks.push(Attack {
            name: words[0].to_owned(),
            proof,
            control: words[3..].contains(&"control"),
            alone: words[3..].contains(&"alone"),
            code: code.to_owned(),
        });
    }
    attacks
}

/// Ordinary programs: a name, the required program, and a shell command.
pub const ORDINARY: [(&str, &str, &str); 9] = [
    (
        "an environment",
        "python3",
        "python3 -m venv --without-pip \"$TMPDIR/made\" && \"$TMPDIR/made/bin/python\" -c 'print(1)'",
    ),
    (
        "processes",
        "python3",
        "printf 'import multiprocessing as m, sys\\ndef f(x): return x * x\\nif __name__ == \"__main__\":\\n    \
         for how in m.get_all_start_methods():\\n        with m.get_context(how).Pool(2) as p: assert p.map(f, [1, 2]) == [1, 4]\\n    \
         with m.Manager() as manager: assert manager.list([1])[0] == 1\\n' > run_it.py && python3 run_it.py",
    ),
    (
        "servers and clients",
        "python3",
        "printf 'import asyncio, os\\nasync def echo(r, w): w.write(await r.readline()); await w.drain(); w.close()\\n\
         async def main():\\n    s = await asyncio.start_server(echo, \"127.0.0.1\", 0)\\n    \
         u = await asyncio.start_unix_server(echo, \"own.socket\")\\n    \
         for r, w in [await asyncio.open_connection(*s.sockets[0].getsockname()), await asyncio.open_unix_connection(\"own.socket\")]:\\n        \
         w.write(b\"hello\\\\n\"); assert await r.readline() == b\"hello\\\\n\"\\n        w.close()\\n    \
         p = await asyncio.create_subprocess_exec(\"true\"); assert await p.wait() == 0\\nasyncio.run(main())\\n' > run_it.py && python3 run_it.py",
    ),
    (
        "many clients",
        "python3",
        "printf 'import socket, threading\\ns = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(16)\\n\
         def connect():\\n    c = socket.create_connection(s.getsockname()); c.recv(1)\\n\
         ts = [threading.Thread(target=connect) for _ in range(20)]\\n[t.start() for t in ts]\\n\
         for _ in ts: s.accept()[0].close()\\n[t.join() for t in ts]\\n' > run_it.py && python3 run_it.py",
    ),
    (
        "names of the own host",
        "python3",
        "python3 -c 'import socket; socket.getaddrinfo(\"localhost\", 80); socket.if_nameindex()'",
    ),
    (
        "files moved between directories",
        "sh",
        "mkdir -p a b && echo x > a/f && mv a/f b/f && ln b/f a/g && cat a/g",
    ),
    (
        "a repository",
        "git",
        "git init -q made && cd made && git -c user.name=a -c user.email=b commit -q --allow-empty -m c",
    ),
    (
        "Node",
        "node",
        "node -e 'require(\"child_process\").execSync(\"true\"); require(\"net\").createServer(() => process.exit(0)).listen(0, function () { require(\"net\").connect(this.address().port) })'",
    ),
    ("Java", "java", "java -Xmx64m -version"),
];
