// SPDX-License-Identifier: MIT
export * from "./connection";
export * from "./host";
export * from "./protocol";
