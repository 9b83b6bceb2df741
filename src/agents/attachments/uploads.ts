/** Defines `attachments.uploads` in the agent definition: the larger files that visitors may upload (ADR 0079). */
import { z } from 'zod'
import { listOf, mappingOf, strictMapping } from '../../lib/formats/mapping-schema.ts'

const MIN_UPLOAD_BYTES = 1024
const MAX_UPLOAD_BYTES = 5 * 1024 ** 3
const uploadBytesRange = `must be ${MIN_UPLOAD_BYTES} to ${MAX_UPLOAD_BYTES}`
const MAX_UPLOADS_PER_HOUR = 1_000

/** The file extensions and the allowed media types for each type of upload. */
const uploadTypes = {
  image: ['png jpg jpeg webp gif avif heic heif bmp tif tiff', /^image\//],
  pdf: ['pdf', /^application\/pdf$/],
  text: ['txt md csv tsv json log yaml yml xml', /^text\/plain$|xml$/],
  audio: ['mp3 m4a wav ogg oga opus flac aac weba', /^(audio|video)\/|\/(ogg|mp4)$/],
  video: ['mp4 m4v mov webm mkv avi ogv mpg mpeg', /^(audio|video)\/|\/(ogg|mp4)$/],
  document: ['docx xlsx pptx odt ods odp doc xls ppt rtf epub', /officedocument|opendocument|zip$|cfb$|rtf$/],
  archive: ['zip gz tgz tar 7z rar bz2 xz zst', /zip|\/x-(tar|7z|rar|bzip|xz|compress)|\/zstd|rar/],
} as const

type UploadType = keyof typeof uploadTypes
const uploadTypeNames = Object.keys(uploadTypes) as [UploadType, ...UploadType[]]

export const AgentUploads = mappingOf(
  z.strictObject(
    {
      types: listOf(z.enum(uploadTypeNames, { error: `must be one of ${uploadTypeNames.join(', ')}` }))
        .min(1, 'must name at least one type')
        .refine((types) => new Set(types).size === types.length, 'must not repeat a type')
        .default(['image', 'pdf', 'text', 'document']),
      /** Maximum size of each upload in bytes. */
      maxBytes: z
        .int({ error: 'must be a whole number' })
        .min(MIN_UPLOAD_BYTES, uploadBytesRange)
        .max(MAX_UPLOAD_BYTES, uploadBytesRange)
        .default(100 * 1024 * 1024),
      /** Maximum number of uploads that a visitor may start in an hour. */
      perHour: z
        .int({ error: 'must be a whole number' })
        .min(1, `must be 1 to ${MAX_UPLOADS_PER_HOUR}`)
        .max(MAX_UPLOADS_PER_HOUR, `must be 1 to ${MAX_UPLOADS_PER_HOUR}`)
        .default(20),
    },
    { error: strictMapping },
  ),
)
export type AgentUploads = z.infer<typeof AgentUploads>

export function listUploadExtensions({ types }: AgentUploads): string[] {
  return types.flatMap((type) => uploadTypes[type][0].split(' '))
}

/** Returns whether a file's extension and detected media type belong to the same accepted type. */
export function acceptsUpload({ types }: AgentUploads, filename: string, mediaType: string): boolean {
  const extension = extensionOf(filename)
  return types.some((type) => {
    const [extensions, content] = uploadTypes[type]
    return extensions.split(' ').includes(extension) && content.test(mediaType)
  })
}

/** Returns the extension in lowercase without a dot; empty for a name without one. */
export function extensionOf(filename: string): string {
  return /\.([^.]+)$/.exec(filename)?.[1]?.toLowerCase() ?? ''
}
