// SPDX-License-Identifier: MIT
import * as vscode from "vscode";

export function setting(name: "path" | "socket"): string {
	return vscode.workspace.getConfiguration("gpuAgent").get<string>(name, "").trim();
}

/** @returns undefined where the client and the adapter choose as they do without an editor */
export function socketSetting(ofConfiguration?: unknown): string | undefined {
	return typeof ofConfiguration === "string" && ofConfiguration ? ofConfiguration : setting("socket") || undefined;
}
