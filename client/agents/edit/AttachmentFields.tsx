/** Shows the fields that determine which files visitors may attach. */
import { Checkbox, SimpleGrid, Stack } from '@mantine/core'
import { t } from '../../strings/language.ts'
import { NumberField, useField } from './fields.tsx'
import { PresenceSwitch } from './switches.tsx'

const MIN_BYTES = 1024
const MAX_BYTES = 5 * 1024 * 1024

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
          <TypesField />
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

/**
 * Edits `attachments.types`; without it, agents accept images. An empty list is an error, which the server's
 * check explains.
 */
function TypesField() {
  const { value, error, isDisabled, attributes, set } = useField(['attachments', 'types'])
  const chosen = Array.isArray(value) ? value.map(String) : ['image']
  return (
    <Checkbox.Group
      label={t('editor.attachTypes')}
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
