/** Shows the fields that determine which files visitors may attach. */
import { Checkbox, SimpleGrid, Stack } from '@mantine/core'
import { t } from '../../strings/language.ts'
import type { Path } from '../object-paths.ts'
import { NumberField, useField } from './fields.tsx'
import { PresenceSwitch } from './switches.tsx'

const MIN_BYTES = 1024
const MAX_BYTES = 5 * 1024 * 1024
const MAX_UPLOAD_BYTES = 5 * 1024 * 1024 * 1024

export function AttachmentFields() {
  const { value } = useField(['attachments'])
  const isOn = value !== undefined && value !== null
  return (
    <Stack gap="sm">
      <PresenceSwitch
        path={['attachments']}
        label={t('editor.attach')}
        about={t('editor.attachAbout')}
        initial={{ types: ['image'] }}
      />
      {isOn ? (
        <>
          <TypesField path={['attachments', 'types']} types={types} initial={['image']} />
          <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
            <NumberField
              path={['attachments', 'maxCount']}
              label={t('editor.attachCount')}
              about={t('editor.attachCountAbout')}
              placeholder="4"
              min={1}
              max={10}
            />
            <NumberField
              path={['attachments', 'maxBytes']}
              label={t('editor.attachBytes')}
              about={t('editor.attachBytesAbout')}
              placeholder="1048576"
              min={MIN_BYTES}
              max={MAX_BYTES}
              step={MIN_BYTES}
            />
          </SimpleGrid>
          <UploadFields />
        </>
      ) : null}
    </Stack>
  )
}

const types = [
  { value: 'image', label: t('editor.attachImage') },
  { value: 'pdf', label: t('editor.attachPdf') },
  { value: 'text', label: t('editor.attachText') },
]

const uploadTypes = [
  ...types,
  { value: 'audio', label: t('editor.uploadAudio') },
  { value: 'video', label: t('editor.uploadVideo') },
  { value: 'document', label: t('editor.uploadDocument') },
  { value: 'archive', label: t('editor.uploadArchive') },
]

/** Shows the fields for files that visitors upload separately from the message. */
function UploadFields() {
  const { value } = useField(['attachments', 'uploads'])
  const isOn = value !== undefined && value !== null
  return (
    <>
      <PresenceSwitch
        path={['attachments', 'uploads']}
        label={t('editor.upload')}
        about={t('editor.uploadAbout')}
        initial={{ types: ['image', 'pdf', 'text', 'document'] }}
      />
      {isOn ? (
        <>
          <TypesField
            path={['attachments', 'uploads', 'types']}
            label={t('editor.uploadTypes')}
            types={uploadTypes}
            initial={['image', 'pdf', 'text', 'document']}
          />
          <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
            <NumberField
              path={['attachments', 'uploads', 'maxBytes']}
              label={t('editor.uploadBytes')}
              about={t('editor.uploadBytesAbout')}
              placeholder="104857600"
              min={MIN_BYTES}
              max={MAX_UPLOAD_BYTES}
              step={MIN_BYTES}
            />
            <NumberField
              path={['attachments', 'uploads', 'perHour']}
              label={t('editor.uploadPerHour')}
              about={t('editor.uploadPerHourAbout')}
              placeholder="20"
              min={1}
              max={1_000}
            />
          </SimpleGrid>
        </>
      ) : null}
    </>
  )
}

interface TypesFieldProps {
  readonly path: Path
  readonly label?: string
  readonly types: readonly { readonly value: string; readonly label: string }[]
  /** The types that an agent accepts if the definition lists none. */
  readonly initial: readonly string[]
}

/**
 * Edits a list of types. An empty list is an error, which the server's
 * check explains.
 */
function TypesField({ path, label, types, initial }: TypesFieldProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  const chosen = Array.isArray(value) ? value.map(String) : [...initial]
  return (
    <Checkbox.Group
      label={label ?? t('editor.attachTypes')}
      error={error}
      value={chosen}
      onChange={(next) => set(types.map((type) => type.value).filter((type) => next.includes(type)))}
    >
      <Stack gap="xs" mt="xs">
        {types.map((type, index) => (
          <Checkbox key={type.value} {...type} {...(index === 0 ? attributes : {})} disabled={isDisabled} />
        ))}
      </Stack>
    </Checkbox.Group>
  )
}
