/** The kinds of values settings hold; each says what its text must be, never what it was: it may be a secret. */
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { parseKey } from '../lib/api-key.ts'
import { parseEmail } from '../lib/email.ts'
import { nearestName } from '../lib/nearest-name.ts'
import type { AddressBlock } from '../lib/net.ts'

/** Text of one kind; `rule` is the rest of the sentence that begins with the variable's name. */
function value<T>(rule: string | ((text: string) => string), parse: (text: string) => T | undefined) {
  return z.string({ error: orMissing('must be text; put it in quotes') }).transform((text, context): T => {
    const parsed = parse(text)
    if (parsed !== undefined) return parsed
    context.addIssue(typeof rule === 'string' ? rule : rule(text))
    return z.NEVER
  })
}

/** The message for a value of the wrong kind, which is another when there is none. */
export function orMissing(rule: string): z.core.$ZodErrorMap {
  return ({ input }) => (input === undefined ? 'is missing' : rule)
}

export function integer(from: number, to: number) {
  return value(`must be a whole number from ${from} to ${to}`, (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return number >= from && number <= to ? number : undefined
  })
}

const [SHORTEST_SECONDS, LONGEST_SECONDS] = [0.001, 86_400]

export function seconds() {
  const rule = `must be a number of seconds from ${SHORTEST_SECONDS} to ${LONGEST_SECONDS}, such as 15 or 0.5`
  return value(rule, (text) => {
    const number = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN
    return number >= SHORTEST_SECONDS && number <= LONGEST_SECONDS ? number : undefined
  })
}

export function oneOf<const T extends string>(values: readonly T[]) {
  return value(`must be one of ${values.join(', ')}`, (text) =>
    values.find((candidate) => candidate === text),
  )
}

/** Text that matches as a whole. */
export function matching(pattern: RegExp, rule: string) {
  return value(rule, (text) => (pattern.test(text) ? text : undefined))
}

/** An absolute http(s) address as text, without slashes at its end. */
export function httpUrl(rule: string, isAccepted: (url: URL) => boolean = () => true) {
  return value(rule, (text) => {
    if (!URL.canParse(text) || /[?#\s]/.test(text)) return undefined
    const url = new URL(text)
    url.pathname = url.pathname.replace(/\/+$/, '')
    const isPlain = /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
    return isPlain && isAccepted(url) ? url.href.replace(/\/$/, '') : undefined
  })
}

/** The base URL of an OpenAI-compatible server. */
export function gatewayUrl() {
  return httpUrl(
    'must be an http or https URL that ends in /v1, without credentials, query or fragment',
    (url) => url.pathname.endsWith('/v1'),
  )
}

/** Where Ollama listens unless it is told otherwise, as a gateway's base URL. Decision: 2. */
export const LOCAL_URL = 'http://127.0.0.1:11434/v1'

/** The address of a local runner, with or without its `/v1`; becomes a gateway's base URL. */
export function localUrl() {
  const rule =
    'must be an http or https URL such as http://127.0.0.1:11434, without credentials, query or fragment'
  return httpUrl(rule).transform((url) => (url.endsWith('/v1') ? url : `${url}/v1`))
}

/** Threads of a model that runs in this process. */
export function localThreads() {
  return integer(1, 512)
}

/** Tokens of context of a model that runs in this process. */
export function localContext() {
  return integer(256, 1_048_576)
}

/** Where a PostgreSQL database is, and who uses it there. */
export function postgresUrl() {
  const rule =
    'must be a URL such as postgres://parley:password@127.0.0.1:5432/parley, with % and two hexadecimal digits for each special character of the password; unset means SQLite in PARLEY_DATA_DIR'
  return value(rule, (text) => {
    const url = /^postgres(ql)?:\/\//.test(text) && !/[\s#]/.test(text) ? URL.parse(text) : null
    return url !== null && /^\/[^/]/.test(url.pathname) ? text : undefined
  })
}

/** Where Redis is, with the name and password it wants and the number of a database in it. */
export function redisUrl() {
  const rule =
    'must be a URL such as redis://127.0.0.1:6379/0 or rediss://user:password@redis.example.org, without query or fragment'
  return value(rule, (text) => {
    const url = /^rediss?:\/\//.test(text) && !/[\s?#]/.test(text) ? URL.parse(text) : null
    return url !== null && url.hostname !== '' && /^(\/\d{0,3})?$/.test(url.pathname) ? text : undefined
  })
}

/** What other services accept as a key. */
export function visibleText() {
  return matching(/^[!-~]+$/, 'must be visible ASCII characters only')
}

/** A part of a whole. */
export function share() {
  return value('must be a number from 0 to 1, such as 0.1', (text) => {
    const number = /^\d(\.\d{1,12})?$/.test(text) ? Number(text) : Number.NaN
    return number >= 0 && number <= 1 ? number : undefined
  })
}

/** Headers as OpenTelemetry writes them, their values percent-encoded. */
export function headerList() {
  const rule = 'must be headers such as authorization=Bearer%20token,x-tenant=parley'
  return value(rule, (text) => {
    const headers = text.split(',').map((item) => parseHeader(item.trim()))
    return headers.every((header) => header !== undefined) ? Object.fromEntries(headers) : undefined
  })
}

function parseHeader(text: string): [name: string, value: string] | undefined {
  const [, name = '', sent = ''] = /^([\w!#$%&'*+.^`|~-]{1,100})=(.+)$/.exec(text) ?? []
  try {
    const decoded = decodeURIComponent(sent)
    return name !== '' && /^[\x20-\x7e]+$/.test(decoded) ? [name.toLowerCase(), decoded] : undefined
  } catch {
    return undefined
  }
}

/** What nobody guesses, as a header carries it. */
export function visibleSecret(minimumLength: number) {
  return value(
    `must be at least ${minimumLength} visible ASCII characters; \`openssl rand -hex 24\` makes some`,
    (text) => (/^[!-~]+$/.test(text) && text.length >= minimumLength ? text : undefined),
  )
}

/** Where an MCP server is reached over HTTP. */
export function mcpUrl() {
  return value('must be an http or https URL without credentials or fragment', (text) => {
    if (!URL.canParse(text) || /[#\s]/.test(text)) return undefined
    const { protocol, username, password } = new URL(text)
    return /^https?:$/.test(protocol) && username === '' && password === '' ? text : undefined
  })
}

/** The value of a request header. */
export function headerText() {
  return matching(/^[\t\x20-\x7e]*$/, 'must be ASCII without control characters')
}

/** A word that a program is started with. */
export function programText() {
  return z
    .string({ error: orMissing('must be text; put it in quotes') })
    .refine((text) => !text.includes('\0'), 'must not contain the character U+0000')
}

/** Text of so many bytes at least, as UTF-8. */
export function secretText(minimumBytes: number) {
  return value(
    `must be at least ${minimumBytes} bytes long; \`openssl rand -base64 48\` makes one`,
    (text) => (Buffer.byteLength(text) >= minimumBytes ? text : undefined),
  )
}

/** Such texts, one a line. */
export function secretList(minimumBytes: number) {
  return value(`must be secrets of at least ${minimumBytes} bytes each, one a line`, (text) => {
    const secrets = text.split('\n').map((line) => line.trim())
    const kept = secrets.filter((secret) => secret !== '')
    return kept.every((secret) => Buffer.byteLength(secret) >= minimumBytes) ? kept : undefined
  })
}

export function parentKeyText() {
  return value('must be a whole parent key; `parley keys generate` makes one', (text) =>
    parseKey(text)?.kind === 'parent' ? text : undefined,
  )
}

/** A switch. */
export function flag() {
  return value('must be true or false', (text) => (/^(true|false)$/.test(text) ? text === 'true' : undefined))
}

/** The name of a request header, in lower case; without `_`, which some proxies take for `-`. */
export function headerName() {
  return value('must be a header name of letters, digits and hyphens, such as X-Email', (text) =>
    /^[a-z0-9-]{1,100}$/i.test(text) ? text.toLowerCase() : undefined,
  )
}

/** E-mail addresses in the form they are compared in. */
export function emailList() {
  return list('must be e-mail addresses separated by commas, such as ada@example.org', parseEmail)
}

/** Host names as the `Host` header carries them, in lower case. */
export function hostList() {
  return list(
    'must be host names separated by commas, each with its port if that is not the usual one, such as chat.example.org,localhost:3000',
    (text) => (/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.test(text) ? text.toLowerCase() : undefined),
  )
}

/** Origins of servers, as a content security policy takes them. */
export function originList() {
  return list(
    'must be origins separated by commas, each http:// or https://, a host and perhaps a port, such as https://chat.example.org',
    (text) => {
      const origin = URL.canParse(text) ? new URL(text).origin : undefined
      return /^https?:\/\/[^/?#@\s]+\/?$/.test(text) && origin !== 'null' ? origin : undefined
    },
  )
}

/** Blocks of addresses; a lone address is a block of one. */
export function addressBlockList() {
  return list(
    'must be address ranges separated by commas, such as 10.0.0.0/8,fd00::/8,192.0.2.7',
    parseAddressBlock,
  )
}

function list<T>(rule: string, parse: (item: string) => T | undefined) {
  return value(rule, (text) => {
    const items = text.split(',').map((item) => parse(item.trim()))
    return items.every((item) => item !== undefined) ? items : undefined
  })
}

function parseAddressBlock(text: string): AddressBlock | undefined {
  const [address = '', bits] = text.split('/')
  // The library also reads the short and octal spellings of IPv4, which nobody means to write.
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) && !ipaddr.IPv6.isValid(address)) return undefined
  const block = bits === undefined ? `${address}/${address.includes(':') ? 128 : 32}` : text
  if (!ipaddr.isValidCIDR(block)) return undefined
  const [network, length] = ipaddr.parseCIDR(block)
  // A peer is compared as IPv4 when it is one, so an IPv4 block spelled as IPv6 would never match.
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && length >= 96) {
    return [network.toIPv4Address(), length - 96]
  }
  return [network, length]
}

/** A mapping of these keys and no others. */
export function mappingOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const unknownKey = z.custom<never>(() => false, {
    error: ({ path }) =>
      `is not a key here; the nearest is ${nearestName(String(path?.at(-1)), Object.keys(shape))}`,
  })
  return z.object(shape, { error: orMissing('must be a mapping') }).catchall(unknownKey)
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What is wrong with the name of an entry that operators name themselves; undefined when nothing is. */
export function findNameProblem(name: string): string | undefined {
  return /^[a-z0-9][a-z0-9_-]{0,31}$/.test(name)
    ? undefined
    : 'a name must be 1 to 32 small letters, digits, - and _, the first a letter or digit'
}
