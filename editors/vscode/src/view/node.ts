// SPDX-License-Identifier: MIT
// Rows of the view of GPUs.
import * as vscode from "vscode";
import type { Focus } from "../requests";
import type { Session } from "../sessions";

export interface Node {
	/** It stays the same from look to look, so that the row stays open. */
	readonly id: string;
	/** The row itself. */
	item(): vscode.TreeItem;
	/** Where a click on the row goes. */
	readonly place?: Place;
	/** What is in it.  @p automatic: the view looks again, and nobody has opened the row */
	children(automatic: boolean): Promise<Node[]> | Node[];
}

/** What a row that can be clicked shows. */
export interface Place {
	session: Session;
	focus: Focus;
}

export const FAULT = new vscode.ThemeIcon("error", new vscode.ThemeColor("problemsErrorIcon.foreground"));

/** A row with words besides its name; @p opens: it can be opened. */
export function row(id: string, label: string, description: string, opens: boolean): vscode.TreeItem {
	const item = new vscode.TreeItem(
		label, opens ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None);
	item.id = id;
	item.description = description;
	item.tooltip = description ? `${label}\n${description}` : label;
	return item;
}

/**
 * A click on the row goes to its place.  The command takes the row that is selected: arguments of a
 * command are lost when the row is drawn anew meanwhile.
 */
export function goes(item: vscode.TreeItem): vscode.TreeItem {
	item.command = { command: "gpu-agent.show", title: "Show" };
	return item;
}

/** A row that only says something. */
export class Remark implements Node {
	constructor(readonly id: string, private readonly text: string) {}

	item(): vscode.TreeItem {
		const item = row(this.id, this.text, "", false);
		item.iconPath = new vscode.ThemeIcon("info");
		return item;
	}

	children(): Node[] {
		return [];
	}
}
