/** Finds the hosts of links whose text does not show them. */

/** Matches text such as `example.com` or `https://example.com:8080` at the start of a word. */
const hostInText =
  /(?:^|[\s"'(<[{])(?:[a-z][a-z\d+.-]*:\/\/)?(?:[^\s/?#@]*@)?([^\s/?#@:()<>[\]{}"']+\.[\p{L}\d-]{2,})/giu

/**
 * Returns the link's host if the text names another host or the address contains a user name; otherwise
 * undefined. `href` must be absolute.
 */
export function findHiddenHost(href: string, text: string): string | undefined {
  const { protocol, hostname, host, username, password } = new URL(href)
  if (protocol === 'mailto:') return undefined
  // In `https://bank.example@evil.example`, the part before `@` is a user name.
  if (username !== '' || password !== '') return host
  const invisible = /[\p{Cf}\p{Mn}]/gu
  const named = [...text.normalize('NFKC').replaceAll(invisible, '').matchAll(hostInText)].map(
    ([, name = '']) => name,
  )
  return named.some((name) => !isSameHost(name, hostname)) ? host : undefined
}

function isSameHost(name: string, hostname: string): boolean {
  const address = `https://${name}`
  if (!URL.canParse(address)) return false
  const plain = (one: string) => one.replace(/^www\./, '')
  return plain(new URL(address).hostname) === plain(hostname)
}

/**
 * Returns a link's host without `www.`, or undefined for a mailto link or if the link's text contains the
 * host. `href` must be absolute.
 */
export function findSourceHost(href: string, text: string): string | undefined {
  const { protocol, host } = new URL(href)
  const shown = host.replace(/^www\./, '')
  return protocol === 'mailto:' || text.toLowerCase().includes(shown) ? undefined : shown
}
