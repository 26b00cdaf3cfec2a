// SPDX-License-Identifier: MIT
// Columns of a table of lanes: expressions, and how their values are shown.

/** The letters are those behind the comma of an expression. */
export const FORMATS = [
	{ name: "as its type", letter: "" },
	{ name: "hex", letter: "x" },
	{ name: "int", letter: "d" },
	{ name: "float", letter: "f" },
	{ name: "half", letter: "h" },
	{ name: "bf16", letter: "b" },
	{ name: "char", letter: "c" },
] as const;

export type Letter = typeof FORMATS[number]["letter"];

export interface Column {
	expression: string;
	format: Letter;
}

/** As many as the agent takes. */
export const COLUMNS_MAX = 16;

/** What the user types, maybe with a format. */
export function columnOf(text: string): Column {
	const at = text.lastIndexOf(",");
	const letter = text.slice(at + 1).trim();
	const format = at < 0 ? undefined : FORMATS.find((f) => f.letter !== "" && f.letter === letter);
	return format ? { expression: text.slice(0, at).trim(), format: format.letter } : { expression: text.trim(), format: "" };
}

/** What the agent is asked for. */
export function textOf({ expression, format }: Column): string {
	return format === "" ? expression : `${expression}, ${format}`;
}

export function formatName(letter: Letter): string {
	return FORMATS.find((f) => f.letter === letter)?.name ?? letter;
}
