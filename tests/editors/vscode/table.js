// SPDX-License-Identifier: MIT
// What is in the page of a table of lanes, without an editor.
// usage: node table.js EXTENSION     EXTENSION: the unpacked extension
"use strict";
const assert = require("assert");
const path = require("path");
const runCases = require("./cases.js");
const lanes = path.resolve(process.argv[2], "out/lanes");
const { columnOf, textOf } = require(`${lanes}/columns.js`);
const { page } = require(`${lanes}/page.js`);
const { readTable } = require(`${lanes}/table.js`);

const lane = (n, more) => ({ lane: n, active: n !== 1, shown: n === 2, pc: "0x10", ...more });
const answer = (columns, values) => ({
	threadId: 1, wave: "0:0:0", exec: "0xd", lane: 2, columns,
	lanes: [0, 1, 2, 3].map((n) => lane(n, values && { values: values.map((v) => `${v}${n}`) })),
});
const view = (table, more) => ({ id: "i", nonce: "n", table, onlyActive: false, chosen: false, ...more });

const tests = {
	async "a format is behind the last comma, and comes back as it went"() {
		for (const text of ["n", "n, x", "max(a, b)", "p[1], h", "$v3, b"])
			assert.strictEqual(textOf(columnOf(text)), text);
		assert.deepStrictEqual(columnOf("a, y"), { expression: "a, y", format: "" });
		assert.deepStrictEqual(columnOf("max(a, b), x"), { expression: "max(a, b)", format: "x" });
		assert.deepStrictEqual(columnOf(" n ,f"), { expression: "n", format: "f" });
	},
	async "variables of the function are asked for where nothing was chosen"() {
		const asked = [];
		const table = await readTable(async (wanted) => {
			asked.push(wanted);
			return answer([{ expression: "n", type: "int" }], ["v"]);
		});
		assert.deepStrictEqual(asked, [{ variables: true }]);
		assert.strictEqual(table.columns[0].values.get(3), "v3");
	},
	async "a column without a value says why, and the others have theirs"() {
		const ask = async ({ columns }) => {
			if (columns?.includes("bad"))
				throw new Error("no such name");
			return answer((columns ?? []).map((expression) => ({ expression })), columns);
		};
		const { columns } = await readTable(ask, ["a, x", "bad"].map(columnOf));
		assert.deepStrictEqual(columns.map((c) => [c.expression, c.failure, c.values.get(0)]),
			[["a", undefined, "a, x0"], ["bad", "no such name", undefined]]);
		await assert.rejects(readTable(async () => { throw new Error("gone"); }, [columnOf("a")]), /gone/);
	},
	async "what a program says is text"() {
		const evil = "</td><script>alert(1)</script>\"'&";
		const table = await readTable(async () => answer([{ expression: evil, type: evil }], [evil]));
		const html = page(view({ ...table, wave: evil, exec: evil }, { remark: evil }));
		assert(!html.includes("<script") && !html.includes("\"'&") && html.includes("&#60;script&#62;"), html);
		assert(html.includes("default-src 'none'; style-src 'nonce-n'"), html);
	},
	async "lanes that do not execute are left out on request, and are counted all the same"() {
		const table = await readTable(async () => answer([], []));
		const count = (html) => html.match(/<th scope="row">/g).length;
		assert.deepStrictEqual([count(page(view(table))), count(page(view(table, { onlyActive: true })))], [4, 3]);
		assert(page(view(table)).includes("exec 0xd: 3 of 4 lanes active, lane 2 is shown"));
		assert(page(view(table)).includes("■□■■"));
	},
};

runCases(tests);
