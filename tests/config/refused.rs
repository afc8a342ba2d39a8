//! What is refused, in whole words.

use crate::words;

#[test]
fn look() {
    for text in [
        "graph: g\nresources:\n  file:\n  - name: motd\n    path: /etc/motd\n    contents: |\n      x\n    mode: 644\n    force: yes\n    size: 0x10\n    ratio: inf\n    limit: 3\n    recurse: true\n    content: [a]\n",
        "grahp: g\nresources:\n  File:\n  - name: a\n  pkg:\n  - name: vim\n  zzz: []\ncollect: []\nremote: x\ntypes: x\n",
        "graph: g\nresources:\n  noop:\n  - name: a\n    name: b\n  - name: c\n  - name: c\n  - nam: d\n  - name: \"@@e\"\n  - x\n  - name: ''\n  - name: \"a\\tb\"\n  noop: []\n",
        "graph: g\nresources:\n  file:\n  - {name: a, path: /x}\n  - {name: b, path: /x}\n  - {name: c, path: y, mode: 12}\n",
        "graph: g\nresources:\n  noop:\n  - name: a\n    after: [noop[b]]\n  - name: b\n    after: \"noop[c]\"\n  - name: c\nedges:\n- from: {kind: noop, name: a}\n  to: {kind: noop, name: c}\n- from: {kind: noop, name: a}\n  to: {kind: noop, name: a}\n- from: {kind: nop, name: a}\n  to: {kind: noop, name: aa}\n- {}\n- from: {kind: noop}\n  to: {type: noop, name: c}\n  notfy: true\n- from: {kind: noop, name: a}\n  to: {kind: noop, name: b}\n  notify: on\n",
        "graph: g\nresources:\n  noop:\n  - {name: a, meta: {limit: 1, burst: 0}}\n  - {name: b, meta: {limit: 0}}\n  - {name: c, meta: {limit: .nan}}\n  - {name: d, meta: {limit: -1, retry: -2}}\n  - {name: e, meta: {limit: 1e-300, poll: -2, delay: -1}}\n  - {name: f, meta: {sema: [x, x]}}\n  - {name: g, meta: {sema: ['y:2']}}\n  - {name: h, meta: {sema: ['y:3']}}\n  - {name: i, meta: {sema: [13, 'z:0', 'w:x', '']}}\n  - {name: j, meta: {protect: true, on_conflict: win, on_remove: x, when_allowed: night}}\n  - {name: k, meta: {delay: 500, delay_max: 200, burst: -1, limt: 3}}\n  - {name: l, meta: {noop: NO, retry: \"3\", retryreset: True}}\n",
        "graph: g\nresources: !x {}\ncomment: !!str a\n",
        "graph: g\n---\ngraph: h\n",
        "graph: g\nresources:\n\tnoop: []\n",
        "graph: g\ncomment: a: b\n",
        "graph: g\ncomment: @x\n",
        "graph: g\ncomment: *x\n",
        "graph: g\nresources:\n  exec:\n  - &a {name: b}\n  - <<: *a\n    name: c\n    env: {A: , <<: x}\n",
        "graph: \"g\ncomment: x\n",
        "",
        "- a\n",
        "graph: [x]\nresources: [noop]\nedges: {}\n",
        "graph: g\ncomment: a\u{85}b \u{1b}[0m\n",
    ] {
        println!("{}=====", words(text));
    }
    println!("{}=====", words(b"graph: g\ncomment: \xe9t\xe9\n"));
    println!("{}=====", words(b"\xff\xfeg\0r\0"));
}
