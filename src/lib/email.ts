/** E-mail addresses as people are told apart by them. */

/** The longest address there can be, in characters. Protocol: RFC 3696, 3. */
export const LONGEST_EMAIL = 320

const plausible = /^[^\s@,;:<>()[\]\\"\p{C}]+@[\p{L}\p{N}\p{M}-]+(\.[\p{L}\p{N}\p{M}-]+)*$/u

/** An address in the form it is compared in, lower case and NFC; undefined when it is no plausible one. Decision: 10. */
export function parseEmail(text: string): string | undefined {
  const email = canonical(text)
  if ([...text].length > LONGEST_EMAIL || !plausible.test(email) || hidesAscii(text)) return undefined
  return email
}

function canonical(text: string): string {
  return text.normalize('NFC').toLowerCase().normalize('NFC')
}

/** Somebody with the Kelvin sign in his address is not the one with a `k` there. */
function hidesAscii(text: string): boolean {
  return (text.match(/[^\p{ASCII}]/gu) ?? []).some((character) => /\p{ASCII}/u.test(canonical(character)))
}
