/** Reads the user's identity from a trusted proxy's headers; ignores these headers from any other peer. */
import { isUtf8 } from 'node:buffer'
import { hash, timingSafeEqual } from 'node:crypto'
import type { Config, ForwardedAuthConfig, ForwardedField } from '../config/config.ts'
import type { ImplicitCredentials } from '../http/request.ts'
import { LONGEST_EMAIL, parseEmail } from '../lib/email.ts'
import { ServiceError } from '../lib/errors.ts'
import { isWithin } from '../lib/net.ts'

export interface Identity {
  /** Normalized for comparison. */
  readonly email: string
  readonly name: string
  readonly username: string | undefined
  readonly groups: readonly string[]
  /** True if the user receives the oldest unowned parent key on the first visit instead of a new key. */
  readonly ownsFirstKey?: true
}

type Fields = Partial<Record<ForwardedField, string>>

/**
 * Reads the identity, or returns undefined if no trusted proxy sent one. @throws ServiceError `invalid_value`
 * for ambiguous or malformed headers from a trusted proxy.
 */
export function readIdentity(
  implicit: ImplicitCredentials,
  { forwardedAuth, server }: Pick<Config, 'forwardedAuth' | 'server'>,
): Identity | undefined {
  if (forwardedAuth === undefined) return undefined
  const { proxySecret, headers } = forwardedAuth
  if (server.trustedProxies.length > 0 && !isWithin(implicit.peerAddress, server.trustedProxies))
    return undefined
  if (proxySecret !== undefined && !hasSecret(implicit, proxySecret)) return undefined
  const fields = readFields(implicit.rawHeaders, headers)
  if (fields.email === undefined) return undefined
  const email = parseEmail(fields.email)
  if (email === undefined) throw invalidHeader(headers.email, 'is not an email address')
  return toIdentity(email, fields)
}

function hasSecret({ headers }: ImplicitCredentials, secret: string): boolean {
  const sent = headers['x-proxy-secret']
  if (typeof sent !== 'string') return false
  const digestOf = (bytes: Buffer) => hash('sha256', bytes, 'buffer')
  return timingSafeEqual(digestOf(Buffer.from(sent, 'latin1')), digestOf(Buffer.from(secret)))
}

/** Reads the header value of each field; an empty header is treated as absent. */
function readFields(rawHeaders: readonly string[], names: ForwardedAuthConfig['headers']): Fields {
  const fieldOf = new Map(Object.entries(names).map(([field, name]) => [name, field as ForwardedField]))
  const fields: Fields = {}
  const sent = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const spelled = (rawHeaders[at] as string).toLowerCase()
    const name = spelled.replaceAll('_', '-')
    const field = fieldOf.get(name)
    if (field === undefined) continue
    // Rejects `_`, which another proxy may treat as `-`.
    if (name !== spelled) throw invalidHeader(name, `was sent as ${spelled}`)
    if (sent.has(name)) throw invalidHeader(name, 'was sent twice')
    sent.add(name)
    const value = decode(rawHeaders[at + 1] as string)
    assertSane(name, field, value)
    if (value !== '') fields[field] = value
  }
  return fields
}

/** Decodes UTF-8, because proxies send it but Node reads header values as Latin-1. */
function decode(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}

function assertSane(name: string, field: ForwardedField, value: string): void {
  if (/[\p{Cc}\u2028\u2029]/u.test(value)) throw invalidHeader(name, 'contains a control character')
  if (field === 'groups') return
  // Rejects commas, because some proxies join duplicate headers with one.
  if (value.includes(',')) throw invalidHeader(name, 'contains a comma')
  if ([...value].length > LONGEST_EMAIL)
    throw invalidHeader(name, `is longer than ${LONGEST_EMAIL} characters`)
}

function toIdentity(email: string, fields: Fields): Identity {
  const fullName = [fields.firstName, fields.lastName].filter((part) => part !== undefined).join(' ')
  const username = fields.preferredUsername ?? fields.user
  const groups = (fields.groups ?? '').split(',').map((group) => group.trim())
  return {
    email,
    name: fullName || (username ?? email),
    username,
    groups: groups.filter((group) => group !== ''),
  }
}

function invalidHeader(name: string, problem: string): ServiceError {
  return new ServiceError('invalid_value', `The ${name} header ${problem}.`, {
    param: name,
    code: 'invalid_identity',
  })
}
