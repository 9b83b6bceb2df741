/** Encrypts secrets that the server must be able to show again, such as agent keys. */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Random } from './ids.ts'

export interface Sealer {
  /** Identifies the master key without revealing it, and is part of every sealed text. */
  readonly keyId: string
  readonly formerKeyIds: readonly string[]
  /** `context` is the id of the text's owner, such as an agent; `open` requires the same context. */
  seal(text: string, context: string): string
  /**
   * @throws Error if the text was changed, or was sealed with an unknown master key or a different context.
   */
  open(sealed: string, context: string): string
  derive(purpose: string, sizeBytes: number): Buffer
  deriveFormer(purpose: string, sizeBytes: number): Buffer[]
}

const CIPHER = 'aes-256-gcm'
const VERSION = 'v1'
const [KEY_BYTES, KEY_ID_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 6, 12, 16]

/** The secret must have at least 32 bytes; a string is used as its UTF-8 bytes. */
export function createSealer(
  secret: string | Uint8Array,
  random: Random,
  formerSecrets: readonly string[] = [],
): Sealer {
  const { key, keyId } = deriveKey(secret)
  const former = formerSecrets.map(deriveKey)
  const keys = new Map([...former, { key, keyId }].map((one) => [one.keyId, one.key]))
  return {
    keyId,
    formerKeyIds: former.map((one) => one.keyId),
    seal(text, context) {
      const nonce = random(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context))
      const bytes = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return [VERSION, keyId, bytes.toString('base64url')].join('.')
    },
    open(sealed, context) {
      const [version, sealedUnder = '', payload, ...rest] = sealed.split('.')
      const bytes = Buffer.from(payload ?? '', 'base64url')
      // Requires the canonical encoding, because decoding ignores invalid characters and unused bits.
      const isWhole = bytes.length >= NONCE_BYTES + TAG_BYTES && bytes.toString('base64url') === payload
      if (version !== VERSION || rest.length > 0 || !isWhole) {
        throw new Error('The stored secret has an unknown format.')
      }
      const opener = keys.get(sealedUnder)
      if (opener === undefined) {
        throw new Error(
          `The stored secret was encrypted with a different master key (${sealedUnder}; the current key is ${keyId}): PARLEY_SECRET or the data directory's \`secret\` was replaced.`,
        )
      }
      return decipher(opener, bytes, context)
    },
    derive: (purpose, sizeBytes) => derive(secret, purpose, sizeBytes),
    deriveFormer: (purpose, sizeBytes) => formerSecrets.map((one) => derive(one, purpose, sizeBytes)),
  }
}

export function sealedPrefix(keyId: string): string {
  return `${VERSION}.${keyId}.`
}

function deriveKey(secret: string | Uint8Array) {
  const keyId = derive(secret, 'parley seal key id', KEY_ID_BYTES).toString('base64url')
  return { key: derive(secret, 'parley seal key', KEY_BYTES), keyId }
}

function decipher(key: Buffer, bytes: Buffer, context: string): string {
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    return text.toString('utf8')
  } catch (cause) {
    throw new Error('The stored secret was modified, or belongs to another record.', { cause })
  }
}

function derive(secret: string | Uint8Array, purpose: string, sizeBytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', purpose, sizeBytes))
}
