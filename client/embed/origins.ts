/** Checks which pages may show an agent, with the rules by which browsers match its list of origins. */
import { t } from '../strings/language.ts'

interface Verdict {
  readonly isShown: boolean
  readonly reason: string
}

/**
 * Returns whether a page may show the widget, or undefined if `address` is not a page URL. `ownOrigin` is
 * always allowed. See Content Security Policy 3, section 6.7.2.8 (Does url match expression in origin with
 * redirect count?).
 */
export function checkPage(
  address: string,
  origins: readonly string[],
  ownOrigin: string,
): Verdict | undefined {
  const page = toUrl(address)
  if (page === undefined) return undefined
  if (origins.length === 0) return { isShown: true, reason: t('embed.anyOrigin') }
  if (page.origin === ownOrigin) return { isShown: true, reason: t('embed.ownOrigin') }
  const match = origins.find((origin) => matches(origin, page))
  if (match !== undefined) return { isShown: true, reason: t('embed.listIncludes', { origin: match }) }
  return {
    isShown: false,
    reason: t('embed.notInList', { origin: page.origin }),
  }
}

/** Parses a page URL; assumes https if it has no scheme. */
export function toUrl(address: string): URL | undefined {
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

/** An http origin with the default port also allows https with the default port. */
function isStandard(port: string, page: URL): boolean {
  return (port === '' || port === '80') && page.port === ''
}

function portOf(protocol: string, port: string): string {
  if (port !== '') return port
  return protocol.toLowerCase() === 'https:' ? '443' : '80'
}
