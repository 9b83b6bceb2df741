/** The wire schemas of files, and how a file is rendered into them. */
import { z } from 'zod'
import type { Page } from '../lib/page.ts'
import { label, reference } from '../lib/schema-bounds.ts'
import type { StagedBlob } from '../storage/blobs.ts'
import type { FileRow } from './store.ts'

const fileId = reference().meta({ description: 'The file, `file-` and 27 characters.' })
const unixTime = z.int().meta({ description: 'Unix seconds.' })

const MAX_NAME = 200

function name(what: string) {
  return z
    .string({ error: (issue) => (issue.input === undefined ? `${what} is missing` : `${what} must be text`) })
    .refine((text) => text.isWellFormed(), `${what} is not well-formed Unicode`)
    .refine((text) => !/\p{Cc}/u.test(text), `${what} holds control characters`)
    .max(MAX_NAME, `${what} is longer than ${MAX_NAME} characters`)
}

export interface UploadedFile {
  readonly blob: StagedBlob
  readonly filename: string
}

const FileName = name('the name of the file')

/** Checks the whole part, so that the error names the part and not the file name inside it. */
function findFault(part: unknown): string | undefined {
  if (part === undefined) return 'a part of that name with the bytes is missing'
  return FileName.safeParse((part as UploadedFile).filename).error?.issues[0]?.message
}

const FilePart = z
  .custom<UploadedFile>((part) => findFault(part) === undefined, { error: ({ input }) => findFault(input) })
  .meta({ override: { type: 'string', format: 'binary' }, description: 'The bytes, with their name.' })

/** A form contains only text, so `seconds` is coerced from digits. */
export const FileUpload = z
  .strictObject({
    file: FilePart,
    purpose: name('the purpose')
      .min(1, 'the purpose is empty')
      .meta({ description: 'What the file is for, such as `assistants`.' }),
    expires_after: z
      .strictObject({
        anchor: z.literal('created_at'),
        seconds: z.coerce.number().int().min(3_600).max(2_592_000),
      })
      .optional()
      .meta({ description: 'When the file goes by itself; it stays without it.' }),
  })
  .meta({ id: 'FileUpload' })
export type FileUpload = z.output<typeof FileUpload>

export const FileReference = z.object({ file_id: fileId })

export const FileListQuery = z.object({
  limit: z.int().min(1).max(10_000).default(10_000).meta({ description: 'At most so many.' }),
  after: reference().optional().meta({ description: 'Only files after this one, which may be gone by now.' }),
  order: z
    .enum(['asc', 'desc'])
    .default('desc')
    .meta({ description: 'By creation; `desc` is newest first.' }),
  purpose: label().optional().meta({ description: 'Only files for this purpose.' }),
})
export type FileListQuery = z.output<typeof FileListQuery>

export const FileObject = z
  .strictObject({
    id: fileId,
    object: z.literal('file'),
    bytes: z.int().meta({ description: 'Its size.' }),
    created_at: unixTime,
    filename: z.string(),
    purpose: z.string(),
    status: z.literal('processed').meta({ description: 'Always `processed`: a file can be used at once.' }),
    expires_at: unixTime
      .optional()
      .meta({ description: 'Unix seconds: when it goes; absent when it stays.' }),
  })
  .meta({ id: 'File' })

export const FileList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(FileObject),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'FileList' })

export const FileDeleted = z
  .strictObject({ id: fileId, object: z.literal('file'), deleted: z.literal(true) })
  .meta({ id: 'FileDeleted' })

export function renderFile(row: FileRow): z.output<typeof FileObject> {
  return {
    id: row.id,
    object: 'file',
    bytes: row.size_bytes,
    created_at: row.created_at,
    filename: row.filename,
    purpose: row.purpose,
    status: 'processed',
    ...(row.expires_at === null ? {} : { expires_at: row.expires_at }),
  }
}

export function renderFileList({ rows, hasMore }: Page<FileRow>): z.output<typeof FileList> {
  return {
    object: 'list',
    data: rows.map(renderFile),
    first_id: rows.at(0)?.id ?? null,
    last_id: rows.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}
