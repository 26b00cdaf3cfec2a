// SPDX-License-Identifier: MIT
// What the editor has been told of the view.  Only what has changed is drawn anew: a click on what is drawn anew is lost.
import * as vscode from "vscode";
import { Node, Remark } from "./node";

/** A row as the editor knows it, which is the same one while what it shows changes. */
export class Row {
	/** Somebody has closed it: nobody sees what is below. */
	closed = false;
	/** What it looked like when it was drawn. */
	private look?: string;
	/** The rows below it, and which of them the editor was told of last; nothing before it is opened. */
	private below?: Map<string, Row>;
	private told = "";

	constructor(private shown: Node) {}

	get node(): Node {
		return this.shown;
	}

	/** The editor draws it. */
	draw(): vscode.TreeItem {
		const item = this.shown.item();
		this.look = JSON.stringify(item);
		return item;
	}

	/** The editor shows what is in it. */
	async open(): Promise<Row[]> {
		const rows = this.adopt(await childrenOf(this.shown, false));
		this.told = namesOf(rows);
		return rows;
	}

	/** Looks again.  @returns the rows that must be drawn anew; what is below such a row is drawn with it */
	async changed(): Promise<Row[]> {
		if (!this.below)
			return [];
		if (this.closed) {
			this.below = undefined;
			return [this];
		}
		const rows = this.adopt(await childrenOf(this.shown, true));
		// All are looked at, also below what is drawn anew: nothing is asked for while the editor draws.
		const changes = await Promise.all(rows.map(async (row) => {
			const below = await row.changed();
			return row.isOld() ? [row] : below;
		}));
		return namesOf(rows) === this.told ? changes.flat() : [this];
	}

	private isOld(): boolean {
		return this.look !== undefined && this.look !== JSON.stringify(this.shown.item());
	}

	private adopt(nodes: Node[]): Row[] {
		const rows = nodes.map((node) => {
			const row = this.below?.get(node.id) ?? new Row(node);
			row.shown = node;
			return row;
		});
		this.below = new Map(rows.map((row) => [row.shown.id, row]));
		return rows;
	}
}

function namesOf(rows: Row[]): string {
	return JSON.stringify(rows.map((row) => row.node.id));
}

/** A session that ends while it is asked says so itself. */
async function childrenOf(node: Node, automatic: boolean): Promise<Node[]> {
	try {
		return await node.children(automatic);
	} catch (error) {
		return [new Remark(`${node.id}/failure`, error instanceof Error ? error.message : String(error))];
	}
}
