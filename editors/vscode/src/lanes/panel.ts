// SPDX-License-Identifier: MIT
// Tables of lanes beside the editor, one for each session.  A table is of the wave and the frame that the editor
// shows, and is read again when that changes and somebody can see it.
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Session, Sessions } from "../sessions";
import { Column, columnOf, COLUMNS_MAX, FORMATS } from "./columns";
import { Action, ACTIONS, COMMAND, page, titleOf } from "./page";
import { readTable, Table } from "./table";

/** After something has changed, more does: the editor goes to a frame. */
const SETTLE_MS = 150;

class LaneTable implements vscode.Disposable {
	readonly id = randomUUID();
	private readonly panel: vscode.WebviewPanel;
	private readonly nonce = randomUUID();
	private table?: Table;
	private remark?: string;
	private chosen?: Column[];
	private onlyActive = false;
	private settle?: NodeJS.Timeout;
	private reading = false;
	/** To be read: by somebody, or by itself. */
	private due?: { automatic: boolean };
	private closed = false;

	constructor(private readonly session: Session, gone: () => void) {
		this.panel = vscode.window.createWebviewPanel(
			"gpu-agent.lanes", titleOf(), { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
			{ enableScripts: false, enableCommandUris: [COMMAND], localResourceRoots: [], enableFindWidget: true });
		this.panel.onDidDispose(() => {
			this.closed = true;
			clearTimeout(this.settle);
			gone();
		});
		this.panel.onDidChangeViewState(() => void this.look());
	}

	dispose(): void {
		this.panel.dispose();
	}

	/** Somebody wants to see it. */
	async show(): Promise<void> {
		this.panel.reveal(undefined, true);
		await this.read(false);
	}

	/** What it shows may have changed.  What runs is read for nobody who has not asked. */
	soon(): void {
		clearTimeout(this.settle);
		this.settle = setTimeout(() => {
			if (this.session.isStill)
				void this.read(true);
			else
				this.stale();
		}, SETTLE_MS);
	}

	async act(action: Action, n: number): Promise<void> {
		const column = this.table?.columns[n];
		switch (action) {
		case "show":
			if (this.table)
				await this.session.show({ threadId: this.table.threadId, lane: n });
			break;
		case "format":
			if (column)
				await this.chooseFormat(column, n);
			break;
		case "remove":
			await this.choose(this.columns().filter((_, i) => i !== n));
			break;
		case "add":
			await this.addColumn();
			break;
		case "variables":
			await this.choose(undefined);
			break;
		case "active":
			this.onlyActive = !this.onlyActive;
			this.draw();
			break;
		case "refresh":
			await this.read(false);
			break;
		}
	}

	/** Those that are there now. */
	private columns(): Column[] {
		return this.chosen ?? this.table?.columns.map(({ expression, format }) => ({ expression, format })) ?? [];
	}

	private async choose(columns?: Column[]): Promise<void> {
		this.chosen = columns;
		await this.read(false);
	}

	private async chooseFormat(column: Column, n: number): Promise<void> {
		const items = FORMATS.map(({ name, letter }) => ({ label: name, description: letter === column.format ? "now" : "", letter }));
		const chosen = await vscode.window.showQuickPick(items, { title: `Format of ${column.expression}` });
		if (chosen)
			await this.choose(this.columns().map((c, i) => i === n ? { ...c, format: chosen.letter } : c));
	}

	private async addColumn(): Promise<void> {
		const text = await vscode.window.showInputBox({
			title: "Column of the lanes", prompt: "A variable, a register ($v3, $R4) or another expression", placeHolder: "n + 1, x",
			validateInput: (value) => value.trim() ? undefined : "An expression is needed",
		});
		if (text !== undefined && this.columns().length < COLUMNS_MAX)
			await this.choose([...this.columns(), columnOf(text)]);
	}

	private async read(automatic: boolean): Promise<void> {
		this.due = { automatic: automatic && (this.due?.automatic ?? true) };
		await this.look();
	}

	/** One look at a time, while somebody can see it. */
	private async look(): Promise<void> {
		if (this.reading)
			return;
		this.reading = true;
		try {
			while (this.due && this.panel.visible && !this.closed) {
				const { automatic } = this.due;
				this.due = undefined;
				await this.ask(automatic);
				this.draw();
			}
		} finally {
			this.reading = false;
		}
	}

	/** What went wrong is told in the page: it is no failure of something that somebody does. */
	private async ask(automatic: boolean): Promise<void> {
		try {
			this.table = await readTable((wanted) => this.session.shownLanes(wanted, automatic), this.chosen);
			this.remark = this.session.isStill ? undefined : "The GPU runs: this is what was there when it was read.";
		} catch (error) {
			this.remark = error instanceof Error ? error.message : String(error);
		}
	}

	private stale(): void {
		if (this.table)
			this.remark = "The GPU runs: this is what was there when it was read.";
		this.draw();
	}

	private draw(): void {
		if (this.closed)
			return;
		const { id, nonce, table, remark, onlyActive, chosen } = this;
		this.panel.title = titleOf(table);
		// The editor loads it anew only if it differs.
		this.panel.webview.html = page({ id, nonce, table, remark, onlyActive, chosen: chosen !== undefined });
	}
}

export class LaneTables implements vscode.Disposable {
	private readonly tables = new Map<Session, LaneTable>();
	private readonly listeners: vscode.Disposable[];

	constructor(sessions: Sessions) {
		this.listeners = [
			sessions.onDidChange((session) => session ? this.tables.get(session)?.soon() : this.closeAllBut(sessions.all())),
			sessions.onDidChangeFrame((session) => this.tables.get(session)?.soon()),
		];
	}

	/** Of the wave that the editor shows for a session. */
	async show(session: Session): Promise<void> {
		const table = this.tables.get(session) ?? new LaneTable(session, () => this.tables.delete(session));
		this.tables.set(session, table);
		await table.show();
	}

	/** What a link in a page does. */
	async act(id: unknown, name: unknown, n: unknown): Promise<void> {
		const table = [...this.tables.values()].find((t) => t.id === id);
		const action = ACTIONS.find((a) => a === name);
		if (table && action && typeof n === "number")
			await table.act(action, n);
	}

	dispose(): void {
		vscode.Disposable.from(...this.listeners, ...this.tables.values()).dispose();
	}

	private closeAllBut(sessions: Session[]): void {
		for (const [session, table] of this.tables)
			if (!sessions.includes(session))
				table.dispose();
	}
}
