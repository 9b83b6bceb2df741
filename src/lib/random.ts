/** Cryptographic randomness, passed in wherever it is needed, so that tests can set it. */
export type Random = (bytes: number) => Uint8Array
