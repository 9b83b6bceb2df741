/** Defines the files that the visitor attaches to a message, and renders them for the model. */
import type { AgentSelf, AttachmentPart } from '../chat/transport.ts'

export type AttachmentRules = NonNullable<AgentSelf['attachments']>
export type AttachmentType = AttachmentRules['types'][number]

export interface Attachment {
  readonly id: string
  /** `file` for an upload. */
  readonly type: AttachmentType | 'file'
  /** Null for an image. */
  readonly name: string | null
  /** Data URL, or the text of a text file; absent if the browser does not store it. */
  readonly data?: string
  /** Id of a complete upload of this tab. */
  readonly upload?: string
  /** Identifies the attachment on the server; absent if the server does not store it. */
  readonly stored?: { readonly item: string; readonly part: number }
}

/** Returns the parts of the attachments that the browser or the server has for a new message. */
export function toParts(attachments: readonly Attachment[]): AttachmentPart[] {
  return attachments.flatMap((one) => {
    if (one.upload !== undefined) return [{ type: 'upload', upload: { id: one.upload } }]
    return one.data === undefined ? [] : [toPart(one, one.data)]
  })
}

function toPart({ type, name }: Attachment, data: string): AttachmentPart {
  if (type === 'image') return { type: 'image_url', image_url: { url: data } }
  if (type === 'pdf') return { type: 'file', file: { filename: name ?? 'file.pdf', file_data: data } }
  // The server recognizes a text file by this line.
  return { type: 'text', text: `[Attached file: ${name ?? 'file.txt'}]\n${data}` }
}

export function withoutData(attachments: readonly Attachment[]): Attachment[] {
  return attachments.map(({ data: _data, ...rest }) => rest)
}
