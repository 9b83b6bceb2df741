/** Shows the definition as a form, which edits the same text as the code editor. */
import { Alert, Autocomplete, SimpleGrid, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { modelsQuery } from '../queries.ts'
import { ConversationFields } from './ConversationFields.tsx'
import { FormProvider, LinesField, LongTextField, NumberField, TextField, useField } from './fields.tsx'
import { type SectionTitle, sectionId } from './SectionList.tsx'
import { PageToolsField, ToolsField } from './ToolsField.tsx'
import type { Check, Draft } from './use-editor.ts'

interface DefinitionFormProps {
  readonly draft: Draft
  readonly check: Check
}

export function DefinitionForm({ draft, check }: DefinitionFormProps) {
  return (
    <FormProvider value={{ draft, check }}>
      <Stack gap="lg" p="md">
        {draft.isReadable ? null : (
          <Alert color="yellow" title="The definition is not valid YAML">
            Fix the YAML to use this form. Until then it shows the last valid definition.
          </Alert>
        )}
        <Basics />
        <Section title="Behavior">
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <TextField path={['behavior', 'tone']} label="Tone" placeholder="friendly and calm" />
            <TextField
              path={['behavior', 'language']}
              label="Language"
              placeholder="the visitor’s language"
            />
          </SimpleGrid>
          <LinesField path={['behavior', 'rules']} label="Rules" about="One per line" />
        </Section>
        <Section title="Server tools">
          <ToolsField />
        </Section>
        <Section title="Page tools">
          <PageToolsField />
        </Section>
        <ChatWindow />
        <Section title="Conversations">
          <ConversationFields />
        </Section>
      </Stack>
    </FormProvider>
  )
}

function Section({ title, children }: { readonly title: SectionTitle; readonly children: ReactNode }) {
  return (
    <Stack component="section" gap="sm" aria-label={title} id={sectionId(title)} className="form-section">
      <Title order={2}>{title}</Title>
      {children}
    </Stack>
  )
}

function Basics() {
  return (
    <Section title="Basics">
      <TextField path={['name']} label="Name" isRequired />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <ModelField />
        <NumberField
          path={['temperature']}
          label="Temperature"
          about="Lower is more predictable, higher is more varied (0 to 2)."
          placeholder="0.7"
          min={0}
          max={2}
          step={0.1}
          decimals={2}
        />
      </SimpleGrid>
      <LongTextField path={['instructions']} label="Instructions" isRequired minRows={6} />
    </Section>
  )
}

function ModelField() {
  const { text, error, isDisabled, attributes, set } = useField(['model'])
  const { data: models = [] } = useQuery(modelsQuery)
  return (
    <Autocomplete
      {...attributes}
      label="Model"
      description="Leave empty to use the default model."
      placeholder="Default model"
      data={models.map(({ id }) => id)}
      value={text}
      error={error}
      disabled={isDisabled}
      onChange={(value) => set(value === '' ? undefined : value)}
    />
  )
}

function ChatWindow() {
  return (
    <Section title="Chat window">
      <TextField path={['embed', 'title']} label="Title" placeholder="Agent name" />
      <LongTextField
        path={['embed', 'greeting']}
        label="Greeting"
        about="Shown as the first message, but not sent to the model."
      />
      <LinesField path={['embed', 'starters']} label="Starters" about="Suggested questions, one per line" />
      <LinesField
        path={['embed', 'origins']}
        label="Allowed origins"
        about="Sites that may embed the chat, one per line. Leave empty to allow any site."
        placeholder="https://www.example.com"
      />
    </Section>
  )
}
