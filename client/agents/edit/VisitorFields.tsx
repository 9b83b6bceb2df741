/** Shows the fields that determine how visitors prove their identity. */
import { SimpleGrid, Stack } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { TextLink } from '../../components/text.tsx'
import { t } from '../../strings/language.ts'
import { ChoiceField, LinesField, TextField, useField } from './fields.tsx'

const identities = [
  { value: 'none', label: t('editor.identityNone') },
  { value: 'optional', label: t('editor.identityOptional') },
  { value: 'required', label: t('editor.identityRequired') },
]

export function VisitorFields() {
  const { text } = useField(['visitors', 'identity'])
  // A new agent has no id yet.
  const { agentId } = useParams({ strict: false })
  const isIdentified = text !== '' && text !== 'none'
  return (
    <Stack gap="sm">
      <ChoiceField
        path={['visitors', 'identity']}
        label={t('editor.visitorIdentity')}
        about={t('editor.identityFieldAbout')}
        choices={identities}
      />
      {isIdentified ? (
        <>
          <SimpleGrid cols={{ base: 1, xs: 2 }} className="field-pairs">
            <TextField
              path={['visitors', 'jwt', 'issuer']}
              label={t('editor.jwtIssuer')}
              about={t('editor.jwtClaimAbout', { claim: 'iss' })}
            />
            <TextField
              path={['visitors', 'jwt', 'audience']}
              label={t('editor.jwtAudience')}
              about={t('editor.jwtClaimAbout', { claim: 'aud' })}
            />
          </SimpleGrid>
          <TextField
            path={['visitors', 'jwt', 'jwksUrl']}
            label={t('editor.jwksUrl')}
            about={t('editor.jwksUrlAbout')}
            placeholder="https://shop.example.org/jwks.json"
          />
          <LinesField
            path={['visitors', 'claims']}
            label={t('editor.identityClaims')}
            about={t('editor.identityClaimsAbout')}
            placeholder="plan"
          />
          {agentId === undefined ? null : (
            <TextLink to="/agents/$agentId/embed" params={{ agentId }} hash="visitor-identity" size="sm">
              {t('editor.openVisitorSecret')}
            </TextLink>
          )}
        </>
      ) : null}
    </Stack>
  )
}
