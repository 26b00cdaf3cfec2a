// SPDX-License-Identifier: MIT
// The lanes of the wave that a session shows, with the values of expressions in each.
import type { Lane, Lanes } from "../requests";
import { Column, columnOf, textOf } from "./columns";

export interface TableColumn extends Column {
	type: string;
	/** Why there are no values. */
	failure?: string;
	/** By the number of the lane. */
	values: ReadonlyMap<number, string>;
}

export interface Table {
	threadId: number;
	wave: string;
	exec: string;
	/** The one whose variables are shown. */
	lane?: number;
	lanes: Lane[];
	columns: TableColumn[];
	/** Variables that are no columns, for want of room. */
	more: number;
}

/** Which columns are wanted; the variables of the function without any. */
export interface Wanted {
	columns?: string[];
	variables?: boolean;
}

type Ask = (wanted: Wanted) => Promise<Lanes>;

function valuesOf(lanes: Lane[], position: number): ReadonlyMap<number, string> {
	return new Map(lanes.flatMap(({ lane, values }) => values ? [[lane, values[position]] as const] : []));
}

function tableOf(answer: Lanes, columns: TableColumn[]): Table {
	const { threadId, wave, exec, lane, lanes, more } = answer;
	return { threadId, wave, exec, lane, lanes, columns, more: more ?? 0 };
}

function columnsOf(answer: Lanes): TableColumn[] {
	return (answer.columns ?? []).map(({ expression, type }, i) => (
		{ ...columnOf(expression), type: type ?? "", values: valuesOf(answer.lanes, i) }));
}

/** A column without values says why, and takes none from the others. */
async function eachAlone(ask: Ask, chosen: Column[]): Promise<Table> {
	const base = await ask({});
	const columns: TableColumn[] = [];
	for (const column of chosen)
		columns.push(await ask({ columns: [textOf(column)] }).then(
			(answer) => columnsOf(answer)[0],
			(error: unknown) => ({ ...column, type: "", values: new Map<number, string>(),
				failure: error instanceof Error ? error.message : String(error) })));
	return tableOf(base, columns);
}

/** @param chosen  undefined: the variables of the function */
export async function readTable(ask: Ask, chosen?: Column[]): Promise<Table> {
	try {
		const answer = await ask(chosen ? { columns: chosen.map(textOf) } : { variables: true });
		return tableOf(answer, columnsOf(answer));
	} catch (error) {
		// One that is not known fails for all.
		if (!chosen?.length)
			throw error;
		return eachAlone(ask, chosen);
	}
}
