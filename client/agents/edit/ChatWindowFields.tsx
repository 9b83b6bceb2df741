/** Shows the fields that determine what the widget shows and offers, except its theme. */
import { Stack } from '@mantine/core'
import { t } from '../../strings/language.ts'
import { LinesField, LongTextField, TextField, useField } from './fields.tsx'
import { OptionSwitch, PermissionSwitch } from './switches.tsx'

export function ChatWindowFields() {
  return (
    <Stack gap="sm">
      <TextField path={['embed', 'title']} label={t('editor.title')} placeholder={t('embed.agentName')} />
      <LongTextField
        path={['embed', 'greeting']}
        label={t('editor.greeting')}
        about={t('editor.greetingAbout')}
      />
      <LinesField
        path={['embed', 'starters']}
        label={t('editor.starters')}
        about={t('editor.startersAbout')}
      />
      <OptionSwitch
        path={['embed', 'followUps']}
        label={t('editor.followUps')}
        about={t('editor.followUpsAbout')}
      />
      <OptionSwitch
        path={['embed', 'dictation']}
        label={t('editor.dictation')}
        about={t('editor.dictationAbout')}
      />
      <OptionSwitch path={['embed', 'readAloud']} label={t('editor.readAloud')} />
      <DisclaimerFields />
      <LinesField
        path={['embed', 'origins']}
        label={t('embed.origins')}
        about={t('editor.originsAbout')}
        placeholder="https://www.example.com"
      />
      <LinesField
        path={['embed', 'imageHosts']}
        label={t('embed.imageHosts')}
        about={t('embed.imageHostsAbout')}
        placeholder="images.example.com"
      />
    </Stack>
  )
}

const disclaimer = ['embed', 'disclaimer']

/** Edits `embed.disclaimer`, which is a mapping, or `false` to hide the disclaimer. */
function DisclaimerFields() {
  const { value } = useField(disclaimer)
  return (
    <>
      <PermissionSwitch
        path={disclaimer}
        label={t('editor.disclaimer')}
        about={t('editor.disclaimerAbout')}
      />
      {value === false ? null : (
        <>
          <LongTextField
            path={[...disclaimer, 'text']}
            label={t('editor.disclaimerText')}
            about={t('editor.disclaimerTextAbout')}
          />
          <TextField
            path={[...disclaimer, 'url']}
            label={t('editor.disclaimerUrl')}
            about={t('editor.disclaimerUrlAbout')}
            placeholder="https://www.example.com/privacy"
          />
        </>
      )}
    </>
  )
}
