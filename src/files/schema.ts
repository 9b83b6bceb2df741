/** Defines the API schemas for files, and renders files into them. */
import { z } from 'zod'
import type { Page } from '../lib/page.ts'
import { label, reference, searchText } from '../lib/schema-bounds.ts'
import type { StagedBlob } from '../storage/blobs.ts'
import type { FileRow } from './store.ts'

const fileId = reference().meta({ description: 'File id: `file-` followed by 27 characters.' })
const unixTime = z.int().meta({ description: 'Unix seconds.' })

const MAX_NAME = 200

function name(what: string) {
  return z
    .string({
      error: (issue) => (issue.input === undefined ? `${what} is required` : `${what} must be a string`),
    })
    .refine((text) => text.isWellFormed(), `${what} must be well-formed Unicode`)
    .refine((text) => !/\p{Cc}/u.test(text), `${what} must not contain control characters`)
    .max(MAX_NAME, `${what} must be at most ${MAX_NAME} characters`)
}

export interface UploadedFile {
  readonly blob: StagedBlob
  readonly filename: string
}

const FileName = name('the file name')

/** Checks the whole part, so that the error refers to the form field instead of the file name. */
function findFault(part: unknown): string | undefined {
  if (part === undefined) return 'is required; send the file in a form field of this name'
  return FileName.safeParse((part as UploadedFile).filename).error?.issues[0]?.message
}

const FilePart = z
  .custom<UploadedFile>((part) => findFault(part) === undefined, { error: ({ input }) => findFault(input) })
  .meta({
    override: { type: 'string', format: 'binary' },
    description: 'The file. The form part must have a file name.',
  })

/** Converts `seconds` to a number, because form fields are text. */
export const FileUpload = z
  .strictObject({
    file: FilePart,
    purpose: name('the purpose')
      .min(1, 'the purpose must not be empty')
      .meta({ description: 'Purpose of the file, such as `assistants`.' }),
    expires_after: z
      .strictObject({
        anchor: z.literal('created_at'),
        seconds: z.coerce.number().int().min(3_600).max(2_592_000),
      })
      .optional()
      .meta({
        description: 'Time after which the server deletes the file. If omitted, the file does not expire.',
      }),
  })
  .meta({ id: 'FileUpload' })
export type FileUpload = z.output<typeof FileUpload>

export const FileReference = z.object({ file_id: fileId })

export const FileListQuery = z.object({
  limit: z
    .int()
    .min(1)
    .max(10_000)
    .default(10_000)
    .meta({ description: 'Maximum number of files to return.' }),
  after: reference().optional().meta({
    description:
      'Id of a file; returns only files after it in the list. When the list is sorted by creation time, the file may have been deleted.',
  }),
  order: z
    .enum(['asc', 'desc'])
    .default('desc')
    .meta({ description: 'Sort order; `desc` returns the newest files first.' }),
  sort: z
    .enum(['created', 'name', 'size'], { error: 'must be created, name or size' })
    .default('created')
    .meta({ description: 'Sort field.' }),
  q: searchText().optional().meta({ description: 'Returns only files whose name or id contains this text.' }),
  purpose: label().optional().meta({ description: 'Returns only files with this purpose.' }),
})
export type FileListQuery = z.output<typeof FileListQuery>

export const FileObject = z
  .strictObject({
    id: fileId,
    object: z.literal('file'),
    bytes: z.int().meta({ description: 'Size in bytes.' }),
    created_at: unixTime,
    filename: z.string(),
    purpose: z.string(),
    status: z
      .literal('processed')
      .meta({ description: 'Always `processed`, because files are available immediately.' }),
    expires_at: unixTime.optional().meta({
      description:
        'Time at which the server deletes the file, in Unix seconds; absent if the file does not expire.',
    }),
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
