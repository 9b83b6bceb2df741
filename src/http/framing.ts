/**
 * Determines from a response's headers whether browsers show the page in a frame on another page (CSP 3,
 * section 6.4.2; RFC 7034).
 */

type Headers = Readonly<Record<string, string | string[] | undefined>>

interface Framing {
  /** The URL of the response, after redirects. */
  readonly page: URL
  /** The origin of the page that contains the frame. */
  readonly parentOrigin: string
}

/**
 * Returns the rule that forbids framing, such as `X-Frame-Options: DENY`; undefined if the headers allow it.
 * As in browsers, `frame-ancestors` overrides `X-Frame-Options`.
 */
export function findFramingRefusal(headers: Headers, framing: Framing): string | undefined {
  const policies = listValues(headers['content-security-policy']).flatMap(
    (policy) => findAncestors(policy) ?? [],
  )
  if (policies.length > 0) {
    const refusing = policies.find(
      ({ sources }) => !sources.some((source) => matchesSource(source.toLowerCase(), framing)),
    )
    return refusing && `Content-Security-Policy: ${refusing.text}`
  }
  return findOptionsRefusal(listValues(headers['x-frame-options']), framing)
}

function listValues(header: string | string[] | undefined): string[] {
  const values = [header ?? []].flat().flatMap((line) => line.split(','))
  return values.map((value) => value.trim()).filter((value) => value !== '')
}

/** Returns the first `frame-ancestors` directive of a policy; browsers ignore later ones. */
function findAncestors(policy: string): { text: string; sources: string[] } | undefined {
  for (const text of policy.split(';').map((directive) => directive.trim())) {
    const [name = '', ...sources] = text.split(/\s+/)
    if (name.toLowerCase() === 'frame-ancestors') return { text, sources }
  }
  return undefined
}

/** Browsers ignore unknown values, and block the frame if several values conflict. */
function findOptionsRefusal(values: readonly string[], { page, parentOrigin }: Framing): string | undefined {
  const options = [...new Set(values.map((value) => value.toLowerCase()))]
  const isContradiction =
    options.length > 1 && options.some((option) => ['deny', 'sameorigin', 'allowall'].includes(option))
  const isForeign = options.length === 1 && options[0] === 'sameorigin' && page.origin !== parentOrigin
  const isDenied = options.length === 1 && options[0] === 'deny'
  return isContradiction || isForeign || isDenied ? `X-Frame-Options: ${values.join(', ')}` : undefined
}

/** Returns whether a source expression in lower case matches the parent's origin (CSP 3, section 6.7.2.8). */
function matchesSource(source: string, { page, parentOrigin }: Framing): boolean {
  const parent = new URL(parentOrigin)
  if (source === '*') return true
  if (source === "'self'") return parent.origin === page.origin
  if (/^[a-z][a-z0-9+.-]*:$/.test(source)) return allowsScheme(source, parent.protocol)
  const [, scheme, host = '', port = ''] =
    /^(?:([a-z][a-z0-9+.-]*:)\/\/)?([^/:]+|\[[^\]]*\])(?::(\d+|\*))?(?:\/.*)?$/.exec(source) ?? []
  return (
    allowsScheme(scheme ?? page.protocol, parent.protocol) &&
    allowsHost(host, parent.hostname) &&
    (port === '*' || portOf(port, parent.protocol) === portOf(parent.port, parent.protocol))
  )
}

function allowsScheme(scheme: string, protocol: string): boolean {
  return scheme === protocol || (scheme === 'http:' && protocol === 'https:')
}

function allowsHost(pattern: string, hostname: string): boolean {
  if (pattern === '*') return true
  return pattern.startsWith('*.') ? hostname.endsWith(pattern.slice(1)) : hostname === pattern
}

function portOf(port: string, protocol: string): string {
  if (port !== '') return port
  return protocol === 'https:' ? '443' : '80'
}
