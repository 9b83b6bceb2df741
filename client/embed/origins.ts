/** Checks which pages may show an agent, as browsers match its list of origins. */

interface Verdict {
  readonly isShown: boolean
  readonly reason: string
}

/**
 * What becomes of the widget on a page of that address; undefined when it is none. The own origin is always in the list.
 * See Content Security Policy 3, 6.7.2.8 (Does url match expression in origin with redirect count?).
 */
export function checkPage(
  address: string,
  origins: readonly string[],
  ownOrigin: string,
): Verdict | undefined {
  const page = toUrl(address)
  if (page === undefined) return undefined
  if (origins.length === 0)
    return { isShown: true, reason: 'The agent names no origins, so every site may show it.' }
  if (page.origin === ownOrigin) return { isShown: true, reason: 'It is this server’s own origin.' }
  const match = origins.find((origin) => matches(origin, page))
  if (match !== undefined) return { isShown: true, reason: `The list has ${match}.` }
  return {
    isShown: false,
    reason: `${page.origin} is not in the list: the browser refuses the frame, and the visitor sees no chat.`,
  }
}

/** A bare host is meant with https. */
function toUrl(address: string): URL | undefined {
  const text = address.trim()
  try {
    const url = new URL(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
    return /^https?:$/.test(url.protocol) && url.username === '' && text !== '' ? url : undefined
  } catch {
    return undefined
  }
}

function matches(origin: string, page: URL): boolean {
  const [, scheme = '', wildcard, host = '', port = ''] =
    /^(https?):\/\/(\*\.)?([^:]+)(?::(\d+))?$/i.exec(origin) ?? []
  const isUpgrade = scheme.toLowerCase() === 'http' && page.protocol === 'https:'
  if (`${scheme.toLowerCase()}:` !== page.protocol && !isUpgrade) return false
  const isHost =
    wildcard === undefined
      ? page.hostname === host.toLowerCase()
      : page.hostname.endsWith(`.${host.toLowerCase()}`)
  return (
    isHost &&
    (portOf(page.protocol, page.port) === portOf(`${scheme}:`, port) || (isUpgrade && isStandard(port, page)))
  )
}

/** A list that says http means https on its own port as well. */
function isStandard(port: string, page: URL): boolean {
  return (port === '' || port === '80') && page.port === ''
}

function portOf(protocol: string, port: string): string {
  if (port !== '') return port
  return protocol.toLowerCase() === 'https:' ? '443' : '80'
}
