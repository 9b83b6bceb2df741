/** Reads a file that the visitor chose, and scales images to the agent's limit. */
import { newId } from '../../values.ts'
import type { Attachment, AttachmentRules, AttachmentType } from './attachments.ts'

/** Longest side of an image, in pixels. */
const MAX_SIDE = 2048
const MIN_SIDE = 256
const qualities = [0.85, 0.7, 0.5]
const MAX_NAME = 100

export type FileProblem = 'type' | 'size'

/** Returns the attachment, or why the agent does not accept the file. */
export async function readFile(file: File, rules: AttachmentRules): Promise<Attachment | FileProblem> {
  const name = nameOf(file)
  const accepts = (type: AttachmentType) => rules.types.includes(type)
  if (file.type.startsWith('image/')) return accepts('image') ? readImage(file, rules.max_bytes) : 'type'
  const isPdf = (await file.slice(0, 5).text()) === '%PDF-'
  if (!accepts(isPdf ? 'pdf' : 'text')) return 'type'
  if (file.size > rules.max_bytes) return 'size'
  if (isPdf) {
    const data = await toDataUrl(new Blob([file], { type: 'application/pdf' }))
    return { id: newId(), type: 'pdf', name, data }
  }
  const data = await readText(file)
  if (data === undefined) return 'type'
  // The line that contains the file's name counts towards the limit too.
  return data.length + MAX_NAME > rules.max_bytes ? 'size' : { id: newId(), type: 'text', name, data }
}

/** Returns the name of a file without the characters that the server rejects. */
export function nameOf({ name }: File): string {
  return name.replaceAll(/[\][\p{Cc}]/gu, '_').slice(-MAX_NAME) || 'file'
}

async function readImage(file: File, maxBytes: number): Promise<Attachment | FileProblem> {
  const bitmap = await createImageBitmap(file).catch(() => undefined)
  if (bitmap === undefined) return 'type'
  const side = Math.max(bitmap.width, bitmap.height)
  // JPEG files are always encoded again, because they can contain the location of a photo.
  const isKept = /^image\/(png|webp|gif)$/.test(file.type) && side <= MAX_SIDE && file.size <= maxBytes
  const blob = isKept ? file : await scale(bitmap, Math.min(side, MAX_SIDE), maxBytes)
  bitmap.close()
  if (blob === undefined) return 'size'
  return { id: newId(), type: 'image', name: null, data: await toDataUrl(blob) }
}

/** Returns the image with the best quality within the limit; undefined if none is small enough. */
async function scale(bitmap: ImageBitmap, longest: number, maxBytes: number): Promise<Blob | undefined> {
  const ratio = longest / Math.max(bitmap.width, bitmap.height)
  const canvas = new OffscreenCanvas(
    Math.max(1, Math.round(bitmap.width * ratio)),
    Math.max(1, Math.round(bitmap.height * ratio)),
  )
  const context = canvas.getContext('2d')
  if (context === null) return undefined
  // JPEG has no transparency.
  context.fillStyle = '#ffffff'
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height)
  for (const quality of qualities) {
    const blob = await canvas.convertToBlob({ type: 'image/jpeg', quality })
    if (blob.size <= maxBytes) return blob
  }
  return longest / 2 < MIN_SIDE ? undefined : scale(bitmap, longest / 2, maxBytes)
}

/** Returns undefined if the content is not text. */
async function readText(file: File): Promise<string | undefined> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    return /[^\P{Cc}\t\n\f\r\u0080-\u009F]/u.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

function toDataUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
}
