// SPDX-License-Identifier: MIT
// What of the view of GPUs is drawn anew after a look, without an editor.
// usage: node rows.js EXTENSION     EXTENSION: the unpacked extension
"use strict";
const assert = require("assert");
const Module = require("module");
const path = require("path");
const runCases = require("./cases.js");

// As much of the editor's interface as rows use.
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
const vscode = { TreeItem, ThemeIcon: named, ThemeColor: named, TreeItemCollapsibleState: { None: 0, Collapsed: 1, Expanded: 2 } };
const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? vscode : load(name, ...rest);
const { Row } = require(path.resolve(process.argv[2], "out/view/row.js"));

// What is shown: names, with texts, with what is below.  A new node for each look, as in the view.
let world, asked;
const node = (id) => ({
	id,
	item: () => new TreeItem(`${id} ${world[id].text ?? ""}`, 1),
	children: async (automatic) => {
		asked.push(`${id} ${automatic ? "by itself" : "by somebody"}`);
		if (world[id].fails)
			throw new Error(world[id].fails);
		return (world[id].below ?? []).map(node);
	},
});

// As the editor does: a row is drawn, and what is in it is shown where it is open.
async function draw(row, open) {
	const drawn = { [row.node.id]: row };
	row.draw();
	if (open.includes(row.node.id))
		for (const below of await row.open())
			Object.assign(drawn, await draw(below, open));
	return drawn;
}

async function begin() {
	world = { all: { below: ["a", "b"] }, a: { below: ["x", "y"] }, b: { below: ["z"] }, x: {}, y: {}, z: {} };
	asked = [];
	const rows = await draw(new Row(node("all")), ["all", "a"]);
	assert.deepStrictEqual(asked.splice(0), ["all by somebody", "a by somebody"]);
	const look = async () => (await rows.all.changed()).map((row) => row.node.id);
	return { rows, look };
}

const tests = {
	async "what is equal is not drawn, and nobody has asked for it"() {
		const { look } = await begin();
		assert.deepStrictEqual([await look(), await look()], [[], []]);
		assert.deepStrictEqual(asked, ["all by itself", "a by itself", "all by itself", "a by itself"]);
	},
	async "a row is drawn without those beside and above it"() {
		const { rows, look } = await begin();
		world.y.text = world.b.text = "new";
		assert.deepStrictEqual(await look(), ["y", "b"]);
		assert.strictEqual(rows.y.draw().label, "y new");
		assert.deepStrictEqual(await look(), ["b"], "until the editor has drawn it");
		rows.b.draw();
		assert.deepStrictEqual(await look(), []);
	},
	async "rows that come and go are drawn with the row above them, and others stay the same objects"() {
		const { rows, look } = await begin();
		world.a.below = ["y", "n"];
		world.n = {};
		assert.deepStrictEqual([await look(), await look()], [["a"], ["a"]], "until the editor has asked for them");
		const [y, n] = await rows.a.open();
		assert.deepStrictEqual([y === rows.y, n.node.id], [true, "n"]);
		assert.deepStrictEqual(await look(), []);
	},
	async "what is closed is not looked at, and is asked for when it is opened"() {
		const { rows, look } = await begin();
		rows.a.closed = true;
		assert.deepStrictEqual([await look(), await look()], [["a"], []]);
		assert.deepStrictEqual(asked.splice(0), ["all by itself", "all by itself"]);
		rows.a.closed = false;
		assert.strictEqual((await rows.a.open()).length, 2);
		assert.deepStrictEqual(asked, ["a by somebody"]);
	},
	async "a failure is a row of its own, for each row that fails"() {
		const { rows, look } = await begin();
		world.a.fails = world.b.fails = "gone";
		assert.deepStrictEqual(await look(), ["a"]);
		const failed = [...await rows.a.open(), ...await rows.b.open()].map((row) => row.node.item());
		assert.deepStrictEqual(failed.map((item) => item.label), ["gone", "gone"]);
		assert.strictEqual(new Set(failed.map((item) => item.id)).size, 2);
	},
};

runCases(tests);
