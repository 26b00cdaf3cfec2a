// SPDX-License-Identifier: MIT
// The page of a table of lanes, for eyes, keyboards and screen readers.
import { commandLink, document, escaped } from "../html";
import type { Lane } from "../requests";
import { COLUMNS_MAX, formatName } from "./columns";
import type { Table, TableColumn } from "./table";

/** What a link in the page does. */
export const ACTIONS = ["show", "format", "remove", "add", "variables", "active", "refresh"] as const;
export type Action = typeof ACTIONS[number];
export const COMMAND = "gpu-agent.lanesAction";

export interface View {
	/** Names the page in what its links run. */
	id: string;
	nonce: string;
	table?: Table;
	/** Why there is none, or why it is old. */
	remark?: string;
	/** Lanes that do not execute are left out. */
	onlyActive: boolean;
	/** The columns were chosen; they are not those of the function. */
	chosen: boolean;
}

const STYLE = `
body { color: var(--vscode-foreground); background: var(--vscode-editor-background); padding: 0 12px;
	font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); }
h1 { font-size: 1.2em; font-weight: 600; margin: 12px 0 4px; }
p { margin: 4px 0; }
nav a { margin-right: 14px; }
a { color: var(--vscode-textLink-foreground); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus { outline: 1px solid var(--vscode-focusBorder); }
.mask, td, tbody th { font-family: var(--vscode-editor-font-family, monospace); font-size: var(--vscode-editor-font-size); }
.mask { letter-spacing: 1px; }
.remark { color: var(--vscode-editorWarning-foreground); }
table { border-collapse: collapse; margin: 8px 0 16px; }
th, td { padding: 2px 12px 2px 0; text-align: left; white-space: nowrap; font-weight: normal; }
thead th { position: sticky; top: 0; background: var(--vscode-editor-background); vertical-align: bottom;
	border-bottom: 1px solid var(--vscode-panel-border); }
thead .name { font-weight: 600; }
thead small { color: var(--vscode-descriptionForeground); display: block; }
thead .failure { color: var(--vscode-errorForeground); white-space: normal; max-width: 24em; }
tr.inactive td, tr.inactive th { color: var(--vscode-disabledForeground); }
tr.shown th, tr.shown td { background: var(--vscode-list-inactiveSelectionBackground); }
tr.exception td.why { color: var(--vscode-errorForeground); }
`;

function link(view: View, action: Action, n: number, text: string, label = ""): string {
	return commandLink(COMMAND, [view.id, action, n], text, label && `aria-label="${escaped(label)}" title="${escaped(label)}"`);
}

/** A column that only some waves have. */
interface Fact {
	name: string;
	class: string;
	text(lane: Lane): string;
}

function factsOf(lanes: Lane[]): Fact[] {
	const triple = (v?: number[]): string => v ? `(${v.join(", ")})` : "";
	const facts: [Fact, boolean][] = [
		[{ name: "active", class: "", text: (l) => l.active ? "yes" : "no" }, true],
		[{ name: "exception", class: "why", text: (l) => l.exception ?? "" }, lanes.some((l) => l.exception)],
		[{ name: "work-item", class: "", text: (l) => triple(l.workItem) }, lanes.some((l) => l.workItem)],
		[{ name: "part", class: "", text: (l) => l.part === undefined ? "" : String(l.part) }, lanes.some((l) => l.part !== undefined)],
		[{ name: "pc", class: "", text: (l) => l.pc }, new Set(lanes.map((l) => l.pc)).size > 1],
	];
	return facts.filter(([, known]) => known).map(([fact]) => fact);
}

function columnHead(view: View, { expression, type, format, failure }: TableColumn, i: number): string {
	const shown = formatName(format);
	return `<th scope="col"><span class="name">${escaped(expression)}</span> ` +
		link(view, "remove", i, "×", `Remove the column ${expression}`) +
		`<small>${escaped(type)} ${link(view, "format", i, shown, `Format of ${expression}: ${shown}`)}</small>` +
		`${failure === undefined ? "" : `<small class="failure">${escaped(failure)}</small>`}</th>`;
}

function row(view: View, table: Table, facts: Fact[], l: Lane): string {
	const classes = [...(l.active ? [] : ["inactive"]), ...(l.shown ? ["shown"] : []), ...(l.exception ? ["exception"] : [])];
	const cells = [
		...facts.map((f) => `<td${f.class && ` class="${f.class}"`}>${escaped(f.text(l))}</td>`),
		...table.columns.map((c) => `<td>${escaped(c.values.get(l.lane) ?? "")}</td>`),
	];
	return `<tr class="${classes.join(" ")}"${l.shown ? " aria-current=\"true\"" : ""}><th scope="row">` +
		`${link(view, "show", l.lane, `${l.lane}${l.shown ? " ◀" : ""}`, `Show lane ${l.lane}${l.shown ? ", which is shown" : ""}`)}</th>` +
		`${cells.join("")}</tr>`;
}

/** Which lanes execute, lane 0 at the left, in words and as a picture. */
function mask({ exec, lanes, lane }: Table): string {
	const active = lanes.filter((l) => l.active).length;
	const picture = lanes.map((l) => `${l.lane && l.lane % 8 === 0 ? " " : ""}${l.active ? "■" : "□"}`).join("");
	const shown = lane === undefined ? "" : `, lane ${lane} is shown`;
	return `<p id="exec">exec ${escaped(exec)}: ${active} of ${lanes.length} lanes active${shown}</p>` +
		`<p class="mask" aria-hidden="true">${picture}</p>`;
}

function tableOf(view: View, table: Table): string {
	const facts = factsOf(table.lanes);
	const lanes = table.lanes.filter((l) => l.active || !view.onlyActive);
	const heads = [
		"<th scope=\"col\">lane</th>", ...facts.map((f) => `<th scope="col">${f.name}</th>`),
		...table.columns.map((c, i) => columnHead(view, c, i)),
	];
	return `<table aria-label="Lanes of wave ${escaped(table.wave)}" aria-describedby="exec">
<thead><tr>${heads.join("")}</tr></thead>
<tbody>${lanes.map((l) => row(view, table, facts, l)).join("\n")}</tbody>
</table>`;
}

function links(view: View, table: Table): string {
	return `<nav aria-label="Columns and lanes">${[
		...(table.columns.length < COLUMNS_MAX ? [link(view, "add", 0, "Add a column")] : []),
		...(view.chosen ? [link(view, "variables", 0, "Variables of the function")] : []),
		link(view, "active", 0, view.onlyActive ? "All lanes" : "Only active lanes"),
		link(view, "refresh", 0, "Read again"),
	].join(" ")}</nav>`;
}

export function titleOf(table?: Table): string {
	return table ? `Lanes of ${table.wave}` : "Lanes";
}

export function page(view: View): string {
	const { table, remark, nonce } = view;
	const body = [
		`<h1>${escaped(table ? `Lanes of wave ${table.wave}` : "Lanes")}</h1>`,
		`<p role="status" class="remark">${escaped(remark ?? "")}</p>`,
		...(table ? [
			mask(table), links(view, table),
			...(table.more ? [`<p>${table.more} more variables: there is room for ${COLUMNS_MAX} columns</p>`] : []),
			tableOf(view, table),
		] : [`<nav>${link(view, "refresh", 0, "Read again")}</nav>`]),
	].join("\n");
	return document({ title: titleOf(table), nonce, style: STYLE, body });
}
