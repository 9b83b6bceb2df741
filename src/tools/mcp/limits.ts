/** How much of an MCP server is put up with. */

/** One message: far more than a model reads, enough for an image among the text. */
export const MOST_MESSAGE_BYTES = 4 * 1024 * 1024
/** For starting a program and shaking hands with it; package runners download what they run first. */
export const CONNECT_MS = 60_000
/** For saying goodbye. */
export const GRACE_MS = 1_000
