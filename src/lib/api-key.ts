/** Defines the API key format; mints and parses keys without database access. */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { ALPHABET, newId, type Random } from './ids.ts'

/** Scoped keys are reserved for later use; the server does not mint them. */
export const keyPrefixes = { parent: 'svc_', agent: 'agnt_key-', scoped: 'svc_scoped_' } as const

type KeyKind = keyof typeof keyPrefixes

export interface MintedKey {
  readonly text: string
  /** The 12 characters after the prefix. They identify the key and are not secret. */
  readonly publicId: string
  /** SHA-256 of the key, which the database stores instead of the key. */
  readonly digest: string
  readonly hint: string
}

const PUBLIC_ID_LENGTH = 12

/** 43 base-62 characters encode 256 bits. */
const SECRET_LENGTH = 43

const CHECKSUM_LENGTH = 6

// The longest prefix comes first, so that a scoped key is never parsed as a parent key.
const layout = /^(svc_scoped_|svc_|agnt_key-)([0-9A-Za-z]{12})[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/

/** Mints a key; pass `publicId` to rotate a key without changing its public id. */
export function mintKey(kind: 'parent' | 'agent', random: Random, publicId?: string): MintedKey {
  const id = publicId ?? newId('', PUBLIC_ID_LENGTH, random)
  const body = keyPrefixes[kind] + id + newId('', SECRET_LENGTH, random)
  const text = body + checksumOf(body)
  return { text, publicId: id, digest: digestOf(text), hint: hintOf(text) }
}

/** Returns a key's kind and public id, or undefined if its format or checksum is wrong. */
export function parseKey(text: string): { kind: KeyKind; publicId: string } | undefined {
  const [, prefix = '', publicId = ''] = layout.exec(text) ?? []
  const kind = (Object.keys(keyPrefixes) as KeyKind[]).find((one) => keyPrefixes[one] === prefix)
  if (kind === undefined || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) {
    return undefined
  }
  return { kind, publicId }
}

/**
 * Returns the id from an agent key's public part (prefix and 12 characters), or undefined for any other text.
 */
export function parsePublicKey(text: string): string | undefined {
  const id = text.startsWith(keyPrefixes.agent) ? text.slice(keyPrefixes.agent.length) : ''
  return /^[0-9A-Za-z]{12}$/.test(id) ? id : undefined
}

/** Returns the complete key's SHA-256 in hexadecimal, as `sha256sum` prints it. */
export function digestOf(text: string): string {
  return hash('sha256', text)
}

/** Returns a well-formed key's prefix and last four characters, such as `svc_…a1B2`. */
export function hintOf(text: string): string {
  const [, prefix = ''] = layout.exec(text) ?? []
  return `${prefix}…${text.slice(-4)}`
}

function checksumOf(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    text = ALPHABET[rest % ALPHABET.length] + text
    rest = Math.floor(rest / ALPHABET.length)
  }
  return text
}

/**
 * Shortens each key to its prefix and public id, and each token or other secret to its first characters.
 * Leaves key hints unchanged.
 */
export function withoutKeys(text: string): string {
  return text
    .replace(/((?:svc_(?:scoped_)?|agnt_key-)\w{12})\w+/g, '$1…')
    .replace(/(atk_[\w-]{8})\.[\w.-]+/g, '$1…')
    .replace(/(vst_\w{6})[\w.-]+/g, '$1…')
    .replace(/((?:whsec|vsk)_[\w+/]{4})[\w+/=-]+/g, '$1…')
}
