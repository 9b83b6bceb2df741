/** Which addresses of a model's links can be followed. Security: 2.11. */

const schemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:'])
const MOST_LENGTH = 2048

/** The address in full, as the browser understands it; undefined unless it is one of the web or of mail. */
export function safeAddress(address: string | undefined): string | undefined {
  // A relative address would lead to the frame's own server: the model means the page, or nothing.
  if (address === undefined || address.length > MOST_LENGTH || !URL.canParse(address)) return undefined
  const { protocol, href } = new URL(address)
  return schemes.has(protocol) ? href : undefined
}
