/** Names for what is told apart. */

/** 128 random bits. `randomUUID` is for secure contexts only, and a server in a local network often is none. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('-')
}
