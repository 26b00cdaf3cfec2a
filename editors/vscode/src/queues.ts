// SPDX-License-Identifier: MIT
// Waves that a fault has halted are shown as stopped while the queues run.  The editor offers no pause then:
// the context gpuAgent.queuesRun shows ours.
import * as vscode from "vscode";

const CONTEXT = "gpuAgent.queuesRun";

interface Message {
	type: string;
	event?: string;
	body?: { allThreadsStopped?: boolean };
}

export class Queues {
	/** Sessions that are stopped while their queues run. */
	private readonly running = new Set<string>();

	/** Keeps up with what an adapter says. */
	tracker(session: vscode.DebugSession): vscode.DebugAdapterTracker {
		return {
			onDidSendMessage: (message: Message) => {
				if (message.type !== "event" || (message.event !== "stopped" && message.event !== "continued"))
					return;
				const run = message.event === "stopped" && !message.body?.allThreadsStopped;
				this.running[run ? "add" : "delete"](session.id);
				this.show();
			},
			onExit: () => {
				this.running.delete(session.id);
				this.show();
			},
		};
	}

	/** For the session that the editor shows. */
	show(): void {
		const id = vscode.debug.activeDebugSession?.id;
		void vscode.commands.executeCommand("setContext", CONTEXT, id !== undefined && this.running.has(id));
	}
}
