/** Normalizes and validates email addresses, which identify users. */

/** Maximum length of an address, in characters (RFC 3696, section 3). */
export const LONGEST_EMAIL = 320

const plausible = /^[^\s@,;:<>()[\]\\"\p{C}]+@[\p{L}\p{N}\p{M}-]+(\.[\p{L}\p{N}\p{M}-]+)*$/u

/** Returns the address in lower case and NFC for comparison, or undefined if it is invalid. */
export function parseEmail(text: string): string | undefined {
  const email = canonical(text)
  if ([...text].length > LONGEST_EMAIL || !plausible.test(email) || hidesAscii(text)) return undefined
  return email
}

function canonical(text: string): string {
  return text.normalize('NFC').toLowerCase().normalize('NFC')
}

/**
 * Returns whether the text contains a non-ASCII character that normalizes to ASCII. Such texts are rejected,
 * because an address with the Kelvin sign would otherwise equal one with a `k`.
 */
function hidesAscii(text: string): boolean {
  return (text.match(/[^\p{ASCII}]/gu) ?? []).some((character) => /\p{ASCII}/u.test(canonical(character)))
}
