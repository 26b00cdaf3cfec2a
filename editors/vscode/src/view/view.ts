// SPDX-License-Identifier: MIT
// A view beside the editor, which is kept up to date while somebody sees it.
import * as vscode from "vscode";
import type { Node } from "./node";
import { Row } from "./row";

/** Between two looks at what nobody tells of, while somebody sees the view. */
const POLL_MS = 3000;
/** What is told at once is drawn at once. */
const SETTLE_MS = 100;
/** How long the editor takes to draw the view anew, at most, and how often to look whether it has. */
const DRAWN_MS = 5000;
const STEP_MS = 20;

export abstract class View implements vscode.TreeDataProvider<Row>, vscode.Disposable {
	protected readonly view: vscode.TreeView<Row>;
	protected readonly listeners: vscode.Disposable[];
	private readonly changed = new vscode.EventEmitter<Row[] | undefined>();
	private readonly root: Row;
	private poll?: NodeJS.Timeout;
	private settle?: NodeJS.Timeout;
	/** It looks whether anything has changed; something has, since. */
	private looking = false;
	private again = false;
	readonly onDidChangeTreeData = this.changed.event;

	/** @param roots  what the view as a whole has in it; it is no row itself */
	constructor(id: string, roots: Node) {
		this.root = new Row(roots);
		this.view = vscode.window.createTreeView(id, { treeDataProvider: this, showCollapseAll: true });
		this.listeners = [
			this.view, this.changed,
			this.view.onDidChangeVisibility(() => this.watch()),
			this.view.onDidCollapseElement((e) => { e.element.closed = true; }),
			this.view.onDidExpandElement((e) => { e.element.closed = false; }),
		];
	}

	/** Asks for what nobody tells of.  What went wrong is told in the view. */
	protected abstract ask(): Promise<void>;

	/** Before each look at the rows, whether the view is seen or not. */
	protected async prepare(): Promise<void> {}

	/** The row that was clicked.  While the view is drawn anew, no row is known to be selected. */
	async selected(): Promise<Node | undefined> {
		for (let ms = 0; !this.view.selection.length && ms < DRAWN_MS; ms += STEP_MS)
			await new Promise((resolve) => setTimeout(resolve, STEP_MS));
		return this.view.selection[0]?.node;
	}

	/** Asks again. */
	async refresh(): Promise<void> {
		await this.ask();
		await this.look();
	}

	getTreeItem(row: Row): vscode.TreeItem {
		return row.draw();
	}

	getChildren(row?: Row): Promise<Row[]> {
		return (row ?? this.root).open();
	}

	dispose(): void {
		clearInterval(this.poll);
		clearTimeout(this.settle);
		vscode.Disposable.from(...this.listeners).dispose();
	}

	/** Nobody is asked for what nobody sees. */
	protected watch(): void {
		clearInterval(this.poll);
		if (!this.view.visible)
			return;
		this.poll = setInterval(() => void this.refresh(), POLL_MS);
		void this.refresh();
	}

	/** Something has changed that was told. */
	protected soon(): void {
		clearTimeout(this.settle);
		this.settle = setTimeout(() => void this.look(), SETTLE_MS);
	}

	/** Draws what has changed, one look at a time. */
	private async look(): Promise<void> {
		this.again = true;
		if (this.looking)
			return;
		this.looking = true;
		try {
			while (this.again) {
				this.again = false;
				await this.prepare();
				const rows = this.view.visible ? await this.root.changed() : [];
				if (rows.length)
					this.changed.fire(rows.includes(this.root) ? undefined : rows);
			}
		} finally {
			this.looking = false;
		}
	}
}
