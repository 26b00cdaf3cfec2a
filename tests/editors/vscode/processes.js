// SPDX-License-Identifier: MIT
// How processes are shown in the view of GPUs, in the list to choose from and in notices, without an editor.
// usage: node processes.js EXTENSION     EXTENSION: the unpacked extension
"use strict";
const assert = require("assert");
const Module = require("module");
const path = require("path");
const runCases = require("./cases.js");

// As much of the editor's interface as is used.
class TreeItem {
	constructor(label, collapsibleState) {
		Object.assign(this, { label, collapsibleState });
	}
}
const named = class {
	constructor(id, color) {
		Object.assign(this, { id, color });
	}
};
let offered;
const vscode = {
	TreeItem, ThemeIcon: named, ThemeColor: named, TreeItemCollapsibleState: { None: 0, Collapsed: 1, Expanded: 2 },
	Disposable: { from: () => undefined },
	window: { showQuickPick: (items) => { offered = items; return Promise.resolve(undefined); } },
	workspace: { getConfiguration: () => ({ get: () => undefined }) },
};
const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? vscode : load(name, ...rest);
const out = (file) => require(path.resolve(process.argv[2], "out", file));
const { Client } = out("client/index.js");
const { ProcessNode } = out("view/process.js");
const { describe } = out("watcher.js");
const { pickProcess } = out("picker.js");
const { spelled, shortened } = out("spelled.js");

const plain = { pid: 42, uid: 1000, comm: "python3", exe: "/usr/bin/python3", vendor: "amd", gpu_ids: [1], queues: 2, debuggable: true };
const ranked = {
	...plain, command_line: "python3 train.py --lr 1", rank: { rank: 3, from: "RANK", world_size: 8, job: "train-7" }, start_ticks: 77,
};
const hostile = {
	...plain, comm: "a\u202eb", exe: "/tmp/\u2066x", container: "c\u200f", command_line: "x\u202ey\n$(check) z",
	command_line_cut: true, rank: { rank: 0, from: "RANK", job: "j\u061c" },
};
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const shown = (p) => new ProcessNode(p).item();

const tests = {
	async rankAndArgumentsAreTold() {
		const item = shown(ranked);
		assert.strictEqual(item.label, "42 python3");
		assert.strictEqual(item.description, "rank 3 of 8, AMD, 1 device, 2 queues: python3 train.py --lr 1");
		assert.deepStrictEqual(item.tooltip.split("\n"),
			["python3 train.py --lr 1", "/usr/bin/python3", "rank 3 of 8, AMD, 1 device, 2 queues", "job train-7"]);
	},
	async nothingIsToldThatIsNotKnown() {
		const item = shown(plain);
		assert.strictEqual(item.description, "AMD, 1 device, 2 queues");
		assert.strictEqual(item.tooltip, "/usr/bin/python3\nAMD, 1 device, 2 queues");
		assert.ok(shown({ ...plain, rank: { rank: 0, from: "JAX_PROCESS_ID" } }).description.startsWith("rank 0, AMD"));
	},
	async whatCannotBeSeenIsSpelledOut() {
		const item = shown(hostile);
		assert.strictEqual(item.label, "42 a\\u202eb");
		assert.ok(!unseen.test(item.label + item.description + item.tooltip.replace(/\n/g, "")), item.tooltip);
		assert.ok(item.tooltip.startsWith("x\\u202ey\\u000a$(check) z…\n/tmp/\\u2066x\n"), item.tooltip);
		assert.ok(item.tooltip.endsWith("job j\\u061c"), item.tooltip);
	},
	async longLinesAreShortInARow() {
		const item = shown({ ...plain, command_line: "x".repeat(4096) });
		assert.ok(item.description.length < 300 && item.description.endsWith("x…"), item.description);
		assert.ok(item.tooltip.includes("x".repeat(4096)));
		assert.strictEqual(shortened("\u{1f600}\u{1f600}\u{1f600}", 2), "\u{1f600}…");
	},
	async reusedNumbersAreOtherRows() {
		assert.notStrictEqual(new ProcessNode(ranked).id, new ProcessNode({ ...ranked, start_ticks: 78 }).id);
	},
	async noticesHideNothing() {
		const text = describe({ pid: 42, comm: "[a](command:b)\u202e\n" }, { session: "s1", text: "fault\u2067.", groups: [], time_us: 0 });
		assert.strictEqual(text, "GPU exception in process 42 |a|(command:b)\\u202e\\u000a: fault\\u2067.");
	},
	async whatIsOfferedHasNoIconsOfItsOwn() {
		Client.connect = () => Promise.resolve({ processList: () => Promise.resolve({ processes: [hostile, ranked] }), close: () => undefined });
		await pickProcess("/nowhere");
		assert.strictEqual(offered[0].label, "$(circuit-board) 42 a\\u202eb");
		assert.strictEqual(offered[0].detail, "x\\u202ey\\u000a$ (check) z…");
		assert.strictEqual(offered[1].description, "rank 3 of 8, AMD, 1 device, 2 queues");
		assert.strictEqual(offered[1].detail, "python3 train.py --lr 1");
	},
	async allOtherTextStays() {
		assert.strictEqual(spelled("größe 数 \u{1f600} \\n"), "größe 数 \u{1f600} \\n");
		assert.strictEqual(spelled("\u{e0001}"), "\\u{e0001}");
	},
};
runCases(tests);
