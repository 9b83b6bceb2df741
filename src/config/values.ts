/**
 * Defines the value types of settings. Error messages state the rule and never repeat the value, which may
 * be a secret.
 */

import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { parseKey } from '../lib/api-key.ts'
import { parseEmail } from '../lib/email.ts'
import type { AddressBlock } from '../lib/net.ts'
import { parseAmount } from '../prices/money.ts'

export type Value<T> = ReturnType<typeof value<T>>

/**
 * Defines a value type. `rule` completes the sentence "<name> must be …" in error messages and in the
 * generated documentation.
 */
export function value<T>(rule: string | undefined, parse: (text: string) => T | undefined) {
  const error: z.core.$ZodErrorMap = ({ input }) =>
    input === undefined ? 'is missing' : 'must be a string; put it in quotes'
  const parseOrReport = (text: string, context: z.RefinementCtx): T => {
    const parsed = parse(text)
    if (parsed !== undefined) return parsed
    context.addIssue(`must be ${rule}`)
    return z.NEVER
  }
  return z.string({ error }).transform(parseOrReport).meta({ rule })
}

export function matching(pattern: RegExp, rule: string) {
  return value(rule, (text) => (pattern.test(text) ? text : undefined))
}

export const path = () => value(undefined, (text) => text)

export const flag = () =>
  value('true or false', (text) => (/^(true|false)$/.test(text) ? text === 'true' : undefined))

export function oneOf<const T extends string>(...choices: readonly T[]) {
  return value(`one of ${choices.join(', ')}`, (text) => choices.find((choice) => choice === text))
}

function number(rule: string, pattern: RegExp, from: number, to: number) {
  return value(rule, (text) => {
    const parsed = pattern.test(text) ? Number(text) : Number.NaN
    return parsed >= from && parsed <= to ? parsed : undefined
  })
}

export const integer = (from: number, to: number) =>
  number(`a whole number from ${from} to ${to}`, /^\d{1,15}$/, from, to)

export const seconds = () =>
  number('a number of seconds from 0.001 to 86400, such as 15 or 0.5', /^\d+(\.\d{1,9})?$/, 0.001, 86_400)

export const timeZone = () =>
  value('an IANA time zone, such as UTC or Europe/Berlin', (text) =>
    /^[A-Za-z]/.test(text) && isTimeZone(text) ? text : undefined,
  )

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Returns nano-dollars. */
export const usdAmount = () =>
  value('an amount in US dollars from 0 to 1000000 with at most 9 decimals, such as 2.50', (text) => {
    const nano = parseAmount(text)
    return nano === undefined ? undefined : Number(nano)
  })

export const fraction = () => number('a number from 0 to 1, such as 0.1', /^\d(\.\d{1,12})?$/, 0, 1)

/** Accepts a URL and removes its trailing slashes; `finish` may change or reject it. */
function httpUrl(rule: string, finish: (url: string) => string | undefined = (url) => url) {
  return value(rule, (text) => {
    if (!URL.canParse(text) || /[?#\s]/.test(text)) return undefined
    const { protocol, username, password, href } = new URL(text)
    const isPlain = /^https?:$/.test(protocol) && username === '' && password === ''
    return isPlain ? finish(href.replace(/\/+$/, '')) : undefined
  })
}

export const httpUrlSuchAs = (example: string) =>
  httpUrl(`an http or https URL without credentials, query or fragment, such as ${example}`)

export const gatewayUrl = () =>
  httpUrl('an http or https URL that ends in /v1, without credentials, query or fragment', (url) =>
    url.endsWith('/v1') ? url : undefined,
  )

/** The base URL of any provider; not all end in `/v1`. */
export const baseUrl = () => httpUrlSuchAs('https://api.openai.com/v1')

/** Ollama's default base URL, which serves an OpenAI-compatible API. */
export const LOCAL_URL = 'http://127.0.0.1:11434/v1'

export const localUrl = () =>
  httpUrl(
    'an http or https URL such as http://127.0.0.1:11434, without credentials, query or fragment',
    (url) => (url.endsWith('/v1') ? url : `${url}/v1`),
  )

export const localThreads = () => integer(1, 512)

export const localContext = () => integer(256, 1_048_576)

export const postgresUrl = () =>
  value(
    'a URL such as postgres://parley:password@127.0.0.1:5432/parley, with the special characters of the password percent-encoded',
    (text) => {
      const url = /^postgres(ql)?:\/\//.test(text) && !/[\s#]/.test(text) ? URL.parse(text) : null
      return url !== null && /^\/[^/]/.test(url.pathname) ? text : undefined
    },
  )

export const redisUrl = () =>
  value(
    'a URL such as redis://127.0.0.1:6379/0 or rediss://user:password@redis.example.org, without query or fragment',
    (text) => {
      const url = /^rediss?:\/\//.test(text) && !/[\s?#]/.test(text) ? URL.parse(text) : null
      return url !== null && url.hostname !== '' && /^(\/\d{0,3})?$/.test(url.pathname) ? text : undefined
    },
  )

export const visibleText = () => matching(/^[!-~]+$/, 'visible ASCII characters only')

export const printable = (what: string) => matching(/^\P{C}{1,200}$/u, `${what} of at most 200 characters`)

export const bearerToken = (minimumLength: number) =>
  value(
    `at least ${minimumLength} visible ASCII characters; \`openssl rand -hex 24\` generates one`,
    (text) => (/^[!-~]+$/.test(text) && text.length >= minimumLength ? text : undefined),
  )

export const secretText = (minimumBytes: number) =>
  value(`at least ${minimumBytes} bytes long; \`openssl rand -base64 48\` generates one`, (text) =>
    Buffer.byteLength(text) >= minimumBytes ? text : undefined,
  )

export const secretLines = (minimumBytes: number) =>
  value(`secrets of at least ${minimumBytes} bytes each, one per line`, (text) => {
    const secrets = text.split(/\s*\n\s*/).filter((secret) => secret !== '')
    return secrets.every((secret) => Buffer.byteLength(secret) >= minimumBytes) ? secrets : undefined
  })

export const parentKey = () =>
  value('a complete parent key; `parley keys generate` creates one', (text) =>
    parseKey(text)?.kind === 'parent' ? text : undefined,
  )

/**
 * Accepts the name of a request header and converts it to lower case. Rejects `_`, because some proxies treat
 * it as `-`.
 */
export const headerName = () =>
  value('a header name of letters, digits and hyphens, such as X-Email', (text) =>
    /^[a-z0-9-]{1,100}$/i.test(text) ? text.toLowerCase() : undefined,
  )

/** Accepts headers in OpenTelemetry's format, with percent-encoded values. */
export const headerList = () =>
  value('headers such as authorization=Bearer%20token,x-tenant=parley', (text) => {
    const headers = text.split(',').map((item) => parseHeader(item.trim()))
    return headers.every((header) => header !== undefined) ? Object.fromEntries(headers) : undefined
  })

function parseHeader(text: string): [name: string, value: string] | undefined {
  const [, name = '', encoded = ''] = /^([\w!#$%&'*+.^`|~-]{1,100})=(.+)$/.exec(text) ?? []
  try {
    const decoded = decodeURIComponent(encoded)
    return name !== '' && /^[\x20-\x7e]+$/.test(decoded) ? [name.toLowerCase(), decoded] : undefined
  } catch {
    return undefined
  }
}

export const emailList = () =>
  list('email addresses separated by commas, such as ada@example.org', parseEmail)

export const hostList = () =>
  list(
    'host names separated by commas, each with its port unless it is the default, such as chat.example.org,localhost:3000',
    (text) => (/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.test(text) ? text.toLowerCase() : undefined),
  )

export const originList = () =>
  list(
    'origins separated by commas, each http:// or https://, a host and an optional port, such as https://chat.example.org',
    (text) => {
      const origin = URL.canParse(text) ? new URL(text).origin : undefined
      return /^https?:\/\/[^/?#@\s]+\/?$/.test(text) && origin !== 'null' ? origin : undefined
    },
  )

export const addressBlockList = () =>
  list('address ranges separated by commas, such as 10.0.0.0/8,fd00::/8,192.0.2.7', parseAddressBlock)

/** A list of address ranges and host names; converts host names to lower case. */
export const egressTargetList = () =>
  list('host names or address ranges separated by commas, such as hooks.internal,10.0.0.0/8', (text) => {
    const isName = /^(?!-)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(text) && !/^[\d.]+$/.test(text)
    return isName ? text.toLowerCase() : parseAddressBlock(text)
  })

function list<T>(rule: string, parse: (item: string) => T | undefined) {
  return value(rule, (text) => {
    const items = text.split(',').map((item) => parse(item.trim()))
    return items.every((item) => item !== undefined) ? items : undefined
  })
}

function parseAddressBlock(text: string): AddressBlock | undefined {
  const [address = '', bits] = text.split('/')
  // Rejects short and octal IPv4 notations. The library accepts them, but they are usually mistakes.
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) && !ipaddr.IPv6.isValid(address)) return undefined
  const block = bits === undefined ? `${address}/${address.includes(':') ? 128 : 32}` : text
  if (!ipaddr.isValidCIDR(block)) return undefined
  const [network, length] = ipaddr.parseCIDR(block)
  // Converts IPv4-mapped IPv6 ranges to IPv4, because IPv4 clients are compared as IPv4.
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && length >= 96) {
    return [network.toIPv4Address(), length - 96]
  }
  return [network, length]
}
