// SPDX-License-Identifier: MIT
// What of a link is believed, without an editor.
// usage: node links.js EXTENSION     EXTENSION: the unpacked extension
"use strict";
const assert = require("assert");
const Module = require("module");
const path = require("path");

const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? { EventEmitter: class {} } : load(name, ...rest);
const { parseLink } = require(path.resolve(process.argv[2], "out/links.js"));

const GOOD = [
	["/core", "path=/tmp/a core", { does: "core", path: "/tmp/a core" }],
	["/core", "path=/tmp/a=b", { does: "core", path: "/tmp/a=b" }],
	["/core", "path=/tmp/%41+b", { does: "core", path: "/tmp/%41+b" }],
	["/attach", "pid=4194304", { does: "attach", pid: 4194304 }],
	["/attach", "socket=/run/a.sock&pid=1", { does: "attach", pid: 1, socket: "/run/a.sock" }],
];
const BAD = [
	["", "", "not known"],
	["/", "path=/tmp/core", "not known"],
	["/core/", "path=/tmp/core", "not known"],
	["/detach", "pid=1", "not known"],
	["/core", "", "no absolute path"],
	["/core", "path", "no absolute path"],
	["/core", "path=core", "no absolute path"],
	["/core", "path=/tmp/../etc/shadow", "no absolute path"],
	["/core", "path=/tmp//core", "no absolute path"],
	["/core", "path=/tmp/co\nre", "cannot be seen"],
	["/core", "path=/tmp/co\0re", "cannot be seen"],
	["/core", "path=/tmp/\u202eeroc", "cannot be seen"],
	["/core", `path=/${"x".repeat(4095)}`, "longer than"],
	["/core", "path=/tmp/a&path=/tmp/b", "two parameters"],
	["/core", "path=/tmp/a&pid=1", "not known: \"pid\""],
	["/attach", "", "no number"],
	["/attach", "pid=0", "no number"],
	["/attach", "pid=-1", "no number"],
	["/attach", "pid=01", "no number"],
	["/attach", "pid=1e3", "no number"],
	["/attach", "pid=4194305", "no number"],
	["/attach", "pid=1 --force", "no number"],
	["/attach", "pid=1&stopOnAttach=true", "not known: \"stopOnAttach\""],
	["/attach", "pid=1&__proto__=x", "not known: \"__proto__\""],
	["/attach", "pid=1&socket=agentd.sock", "no absolute path"],
	["/attach", "pid=1&socket=", "no absolute path"],
	["/attach", `pid=1&socket=/${"x".repeat(107)}`, "longer than"],
];

for (const [what, query, link] of GOOD)
	assert.deepStrictEqual(parseLink(what, query), link);
for (const [what, query, why] of BAD)
	assert.throws(() => parseLink(what, query), (error) => error.message.includes(why) && error.message.length < 200, `${what}?${query}`);
console.log(GOOD.length + BAD.length);
