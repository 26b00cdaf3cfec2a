// SPDX-License-Identifier: MIT
export * from "./connection";
export * from "./protocol";
