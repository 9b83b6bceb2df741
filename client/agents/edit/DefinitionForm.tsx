/** Shows the definition as a form, which edits the same text as the code editor. */

import { Alert, Autocomplete, SimpleGrid, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { t } from '../../strings/language.ts'
import { modelsQuery } from '../queries.ts'
import { AttachmentFields } from './AttachmentFields.tsx'
import { ChatWindowFields } from './ChatWindowFields.tsx'
import { ConversationFields } from './ConversationFields.tsx'
import { FormProvider, LinesField, LongTextField, NumberField, TextField, useField } from './fields.tsx'
import { type SectionName, sectionId } from './SectionList.tsx'
import { PageToolsField, ToolsField } from './ToolsField.tsx'
import type { Check, Draft } from './use-editor.ts'
import { VisitorFields } from './VisitorFields.tsx'

interface DefinitionFormProps {
  readonly draft: Draft
  readonly check: Check
}

export function DefinitionForm({ draft, check }: DefinitionFormProps) {
  return (
    <FormProvider value={{ draft, check }}>
      <Stack gap="lg" p="md">
        {draft.isReadable ? null : (
          <Alert color="yellow" title={t('editor.invalidYaml')}>
            {t('editor.invalidYamlAbout')}
          </Alert>
        )}
        <Basics />
        <Section name="behavior">
          <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
            <TextField
              path={['behavior', 'tone']}
              label={t('editor.tone')}
              placeholder={t('editor.toneHint')}
            />
            <TextField
              path={['behavior', 'language']}
              label={t('editor.language')}
              placeholder={t('editor.languageHint')}
            />
          </SimpleGrid>
          <LinesField path={['behavior', 'rules']} label={t('editor.rules')} about={t('editor.onePerLine')} />
        </Section>
        <Section name="serverTools">
          <ToolsField />
        </Section>
        <Section name="pageTools">
          <PageToolsField />
        </Section>
        <Section name="chatWindow">
          <ChatWindowFields />
        </Section>
        <Section name="attachments">
          <AttachmentFields />
        </Section>
        <Section name="conversations">
          <ConversationFields />
        </Section>
        <Section name="visitors">
          <VisitorFields />
        </Section>
      </Stack>
    </FormProvider>
  )
}

function Section({ name, children }: { readonly name: SectionName; readonly children: ReactNode }) {
  const title = t(`editor.${name}`)
  return (
    <Stack component="section" gap="sm" aria-label={title} id={sectionId(name)} className="form-section">
      <Title order={2}>{title}</Title>
      {children}
    </Stack>
  )
}

function Basics() {
  return (
    <Section name="basics">
      <TextField path={['name']} label={t('editor.name')} isRequired />
      <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
        <ModelField />
        <NumberField
          path={['temperature']}
          label={t('editor.temperature')}
          about={t('editor.temperatureAbout')}
          placeholder="0.7"
          min={0}
          max={2}
          step={0.1}
        />
      </SimpleGrid>
      <LongTextField path={['instructions']} label={t('editor.instructions')} isRequired minRows={6} />
    </Section>
  )
}

function ModelField() {
  const { text, error, isDisabled, attributes, set } = useField(['model'])
  const { data: models = [] } = useQuery(modelsQuery)
  return (
    <Autocomplete
      {...attributes}
      label={t('editor.model')}
      description={t('editor.modelAbout')}
      placeholder={t('policy.defaultModel')}
      data={models.map(({ id }) => id)}
      value={text}
      error={error}
      disabled={isDisabled}
      onChange={(value) => set(value === '' ? undefined : value)}
    />
  )
}
