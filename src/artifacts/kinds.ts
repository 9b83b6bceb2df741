/** What an artifact can be, and what its id looks like. Contract: Artifact status. */
import type { Random } from '../lib/random.ts'

export const artifactKinds = ['video', 'project', 'captions', 'thumbnail'] as const

export type ArtifactKind = (typeof artifactKinds)[number]

/** An id in the one spelling it is kept in; undefined for anything but a UUID. */
export function parseArtifactId(text: string): string | undefined {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : undefined
}

/** A new UUID (version 4). Protocol: RFC 9562, 5.4. */
export function newUuid(random: Random): string {
  const bytes = Buffer.from(random(16))
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
