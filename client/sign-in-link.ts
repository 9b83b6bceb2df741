/** The secret of a one-time link: taken out of the address before anything else runs. Decision: 10. */

let secret: string | undefined

/** Reads what stands behind `#` of `/console/sign-in`, and removes it from the address and the history at once. */
export function takeLink(): void {
  const { pathname, hash } = window.location
  if (pathname !== '/console/sign-in' || hash.length < 2) return
  secret = hash.slice(1)
  window.history.replaceState(null, '', pathname)
}

/** The secret, once: a second try would be refused anyway. */
export function spendLink(): string | undefined {
  const taken = secret
  secret = undefined
  return taken
}

/** What signs in, of a link that was pasted: all of it where only that was. */
export function secretOf(link: string): string {
  return link.slice(link.lastIndexOf('#') + 1)
}
