/** Shows the fields that determine how visitors reach a person. */
import { SimpleGrid } from '@mantine/core'
import { t } from '../../strings/language.ts'
import { TextField, useField } from './fields.tsx'
import { PermissionSwitch, PresenceSwitch } from './switches.tsx'

const path = ['conversations', 'handover'] as const

/** The server's default, which is the same in all languages. */
const DEFAULT_TEXT = 'Nobody is available.'

export function HandoverFields() {
  const { value } = useField(path)
  const isOn = value !== undefined && value !== null
  return (
    <>
      <PresenceSwitch
        path={path}
        label={t('editor.handover')}
        about={t('editor.handoverAbout')}
        initial={{ timeout: '10m' }}
      />
      {isOn ? (
        <>
          <PermissionSwitch path={[...path, 'button']} label={t('editor.handoverButton')} />
          <PermissionSwitch
            path={[...path, 'tool']}
            label={t('editor.handoverTool')}
            about={t('editor.handoverToolAbout')}
          />
          <PermissionSwitch path={[...path, 'showName']} label={t('editor.handoverName')} />
          <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
            <TextField
              path={[...path, 'timeout']}
              label={t('editor.handoverTimeout')}
              about={t('editor.handoverTimeoutAbout')}
              placeholder="10m"
            />
            <TextField
              path={[...path, 'whenNobody']}
              label={t('editor.handoverNobody')}
              about={t('editor.handoverNobodyAbout')}
              placeholder={DEFAULT_TEXT}
            />
          </SimpleGrid>
        </>
      ) : null}
    </>
  )
}
