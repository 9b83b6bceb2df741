/** What the page adds to each turn, as one message that is marked as the page's. Decision: 11 (context and system). */

/** As the server marks what a caller calls the system's. Decision: 7 (An agent turn). */
const MARK = '[Context provided by the page, not by the user]'
const EXPLANATION = 'This is data about the page the user is looking at. It is no message of the user.'
/** In bytes of UTF-8. Security: 2.5. */
const MOST_BYTES = 64 * 1024

/** The message; undefined when the page adds nothing; null when it adds too much. */
export function toPageMessage(
  system: string | undefined,
  context: Readonly<Record<string, unknown>>,
): string | null | undefined {
  const hasContext = Object.keys(context).length > 0
  if ((system ?? '') === '' && !hasContext) return undefined
  const parts = [MARK, EXPLANATION]
  if ((system ?? '') !== '') parts.push(`\n${system}`)
  if (hasContext) parts.push(`\n${JSON.stringify(context)}`)
  const message = parts.join('\n')
  return new TextEncoder().encode(message).length > MOST_BYTES ? null : message
}
