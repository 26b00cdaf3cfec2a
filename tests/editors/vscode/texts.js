// SPDX-License-Identifier: MIT
// How long a text is kept that the editor shows, without an editor.
// usage: node texts.js EXTENSION     EXTENSION: the unpacked extension
"use strict";
const assert = require("assert");
const Module = require("module");
const path = require("path");

let close, open;
const editor = {
	Uri: { from: (parts) => ({ ...parts, toString: () => `${parts.scheme}:${parts.path}` }) },
	workspace: {
		registerTextDocumentContentProvider: () => undefined,
		onDidCloseTextDocument: (listener) => { close = listener; },
	},
	window: { showTextDocument: (...uris) => open(...uris) },
	commands: { executeCommand: (name, ...rest) => open(...rest) },
};
const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? editor : load(name, ...rest);
const { Texts } = require(path.resolve(process.argv[2], "out/texts.js"));

const LOST = "This was not kept when the editor ended.\n";
const one = { name: "one.txt", text: "1" }, two = { name: "two.txt", text: "2" };

async function main() {
	const texts = new Texts();
	const shown = [];
	open = (...values) => { shown.push(...values.filter((v) => v.scheme)); return Promise.resolve(); };
	await texts.show(one);
	await texts.compare(one, two, "both");
	assert.deepStrictEqual(shown.map((uri) => texts.provideTextDocumentContent(uri)), ["1", "1", "2"]);
	// The same name is another text.
	assert.strictEqual(new Set(shown.map(String)).size, 3);
	close({ uri: shown[1] });
	assert.deepStrictEqual(shown.map((uri) => texts.provideTextDocumentContent(uri)), ["1", LOST, "2"]);
	// What cannot be opened is not kept, and the failure is the caller's.
	shown.length = 0;
	open = (...values) => { shown.push(...values.filter((v) => v.scheme)); return Promise.reject(new Error("no window")); };
	await assert.rejects(texts.show(one), /no window/);
	await assert.rejects(texts.compare(one, two, "both"), /no window/);
	assert.deepStrictEqual(shown.map((uri) => texts.provideTextDocumentContent(uri)), [LOST, LOST, LOST]);
	console.log(shown.length);
}

void main();
