/** Computes upper bounds on the tokens of images, audio and files, whose bytes do not show their number. */
import { isJsonObject } from '../../lib/formats/json.ts'
import type { PriceEntry } from '../../prices/schema.ts'

export type MediaBounds = NonNullable<PriceEntry['bounds']>

/** Tokens that a budget in tokens reserves for a part without a bound. */
const UNBOUNDED_TOKENS = 4_096
const BYTES_PER_KIB = 1_024

type Fields = Readonly<Record<string, unknown>>

const mediaFields = ['image_url', 'input_audio', 'file', 'video_url', 'audio'] as const
type MediaKind = (typeof mediaFields)[number] | 'unknown'

/** The types of parts whose tokens are bounded by their bytes. */
const textTypes: ReadonlySet<unknown> = new Set(['text', 'refusal', 'thinking', 'redacted_thinking'])

interface CountedMedia {
  readonly tokens: number
  readonly imageTokens: number
  readonly audioTokens: number
  readonly images: number
  /** Path of the first part without a bound. */
  readonly unbounded: string | undefined
}

/** Counts the media in messages; those without a bound count as 4,096 tokens. */
export function countMedia(messages: readonly object[], bounds: MediaBounds): CountedMedia {
  const sum = { tokens: 0, imageTokens: 0, audioTokens: 0, images: 0 }
  let unbounded: string | undefined
  for (const { kind, value, path } of listMedia(messages)) {
    const bound = boundOf(kind, value, bounds)
    if (bound === undefined) unbounded ??= path
    const tokens = bound ?? UNBOUNDED_TOKENS
    sum.tokens += tokens
    if (kind === 'image_url') {
      sum.images += 1
      sum.imageTokens += tokens
    } else if (kind === 'input_audio') sum.audioTokens += tokens
  }
  return { ...sum, unbounded }
}

/** Removes the media from a message. */
export function withoutMedia(message: object): object {
  const { content, ...fields } = message as Fields
  return { ...dropMedia(fields), content: Array.isArray(content) ? content.map(dropMedia) : content }
}

interface Media {
  readonly kind: MediaKind
  readonly value: unknown
  readonly path: string
}

function* listMedia(messages: readonly object[]): Generator<Media, void, void> {
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    const { content, ...fields } = message as Fields
    for (const kind of kindsOf(fields)) yield { kind, value: fields[kind], path: `${path}.${kind}` }
    if (!Array.isArray(content)) continue
    for (const [position, part] of (content as readonly Fields[]).entries()) {
      const kinds: readonly MediaKind[] = kindsOf(part)
      const found = kinds.length === 0 && !textTypes.has(part.type) ? (['unknown'] as const) : kinds
      for (const kind of found) yield { kind, value: part[kind], path: `${path}.content[${position}]` }
    }
  }
}

function kindsOf(fields: Fields): readonly (typeof mediaFields)[number][] {
  return mediaFields.filter((name) => fields[name] != null)
}

function dropMedia(fields: Fields): Fields {
  const found = kindsOf(fields)
  if (found.length === 0) return fields
  const kept: Record<string, unknown> = { ...fields }
  for (const name of found) delete kept[name]
  return kept
}

function boundOf(kind: MediaKind, value: unknown, bounds: MediaBounds): number | undefined {
  if (kind === 'image_url') return bounds.image_tokens
  if (kind === 'file') return bounds.file_tokens
  if (kind === 'input_audio' && bounds.audio_tokens_per_kib !== undefined)
    return Math.ceil((audioBytes(value) * bounds.audio_tokens_per_kib) / BYTES_PER_KIB)
  return undefined
}

/** Returns the number of bytes of audio that is encoded with Base64. */
function audioBytes(value: unknown): number {
  const data = isJsonObject(value) ? value.data : undefined
  return typeof data === 'string' ? Buffer.byteLength(data, 'base64') : 0
}
