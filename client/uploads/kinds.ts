/** What an upload can be, in words, and what a file looks like. */
import type { Artifact } from './artifacts.ts'

export const kindNames = {
  video: 'Video',
  project: 'Project',
  captions: 'Captions',
  thumbnail: 'Picture',
} as const

export type Kind = keyof typeof kindNames

/** By what the browser takes the file for; a project where it has no idea. */
export function guessKind({ name, type }: Pick<File, 'name' | 'type'>): Kind {
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('image/')) return 'thumbnail'
  if (/\.(vtt|srt)$/i.test(name)) return 'captions'
  return 'project'
}

export function findKind(value: string): Kind | undefined {
  return Object.hasOwn(kindNames, value) ? (value as Kind) : undefined
}

/** What people call it. */
export function titleOf({ name, filename, artifactId }: Pick<Artifact, 'name' | 'filename' | 'artifactId'>) {
  return name ?? (filename === '' ? artifactId : filename)
}
