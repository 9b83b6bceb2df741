/** What a key looks like: minted, recognised and checked without asking the database. */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { ALPHABET, newId, type Random } from './ids.ts'

/** Contract: Authentication. Scoped keys are reserved: none is minted. Decision: 5. */
export const keyPrefixes = { parent: 'svc_', agent: 'agnt_key-', scoped: 'svc_scoped_' } as const

export type KeyKind = keyof typeof keyPrefixes

/** A new key. */
export interface MintedKey {
  /** The whole key: its owner's secret. */
  readonly text: string
  /** The 12 characters after the prefix, which name the key and may be shown. */
  readonly publicId: string
  /** What the key is stored and looked up by. */
  readonly digest: string
  /** Prefix and last four characters. */
  readonly hint: string
}

const PUBLIC_ID_LENGTH = 12

/** 43 characters of base62 hold 256 bits. */
const SECRET_LENGTH = 43

const CHECKSUM_LENGTH = 6

// The longest prefix comes first, so that a scoped key is never read as a parent key. Security: 2.1.
const layout = /^(svc_scoped_|svc_|agnt_key-)([0-9A-Za-z]{12})[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/

const kinds: Readonly<Record<string, KeyKind>> = {
  [keyPrefixes.scoped]: 'scoped',
  [keyPrefixes.parent]: 'parent',
  [keyPrefixes.agent]: 'agent',
}

/** Makes a new key; a rotated key keeps its public id. Decision: 5. */
export function mintKey(kind: 'parent' | 'agent', random: Random, publicId?: string): MintedKey {
  const id = publicId ?? newId('', PUBLIC_ID_LENGTH, random)
  const body = keyPrefixes[kind] + id + newId('', SECRET_LENGTH, random)
  const text = body + checksumOf(body)
  return { text, publicId: id, digest: digestOf(text), hint: hintOf(text) }
}

/** What kind of key a text is, and which; undefined when it was not minted by anybody or has a typo. */
export function parseKey(text: string): { kind: KeyKind; publicId: string } | undefined {
  const [, prefix = '', publicId = ''] = layout.exec(text) ?? []
  const kind = kinds[prefix]
  if (kind === undefined || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) {
    return undefined
  }
  return { kind, publicId }
}

/** The id in the public part of an agent key, the prefix and 12 characters; undefined for any other text. Decision: 11. */
export function parsePublicKey(text: string): string | undefined {
  const id = text.startsWith(keyPrefixes.agent) ? text.slice(keyPrefixes.agent.length) : ''
  return /^[0-9A-Za-z]{12}$/.test(id) ? id : undefined
}

/** SHA-256 of the whole key in hexadecimal: what `sha256sum` says of it. Security: 2.1. */
export function digestOf(text: string): string {
  return hash('sha256', text)
}

/** Prefix and last four characters of a well-formed key, such as `svc_…a1B2`. Decision: 5. */
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
 * Leaves of every key its prefix and the public id behind it, of every artifact token its prefix and the name of the secret it was
 * signed with; hints stay as they are. Security: 2.13.
 */
export function withoutKeys(text: string): string {
  return text
    .replace(/((?:svc_(?:scoped_)?|agnt_key-)\w{12})\w+/g, '$1…')
    .replace(/(atk_[\w-]{8})\.[\w.-]+/g, '$1…')
}
